// SPDX-License-Identifier: Apache-2.0
//
// IncomingPlans: the plans whose target is this store, as its notes list them. Read when the store
// is reached, so that no acquire waits for them. Read again beside an acquire when the last reading
// is older than kIncomingPlansAge, and before each refusal.
//
// A client that knows the target alone must not lock a name of an unfinished plan there: the lock
// may be held in the source. Two processes that mean two stores by one name must not use one plan:
// each start of a plan has an id, which the records and the target's note contain.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dlock/spi/backend.hpp"
#include "dlock/spi/env.hpp"
#include "migration/plan.hpp"

namespace dlock::core::migration {

inline constexpr Duration kIncomingPlansAge = std::chrono::seconds(10);

/// Loop only.
class IncomingPlans {
 public:
  IncomingPlans(Env& env, Backend& backend) : env_(env), backend_(backend) {}

  /// Reads the plans. Returns a failure if a note cannot be read. `deadline` bounds each request.
  asio::awaitable<Failure> read(TimePoint deadline);
  bool were_read() const noexcept { return read_at_.has_value(); }
  bool are_old() const noexcept { return !read_at_ || env_.now() >= *read_at_ + kIncomingPlansAge; }

  /// Returns a failure unless a client that knows only this store may lock `name` in it.
  Failure admit(std::string_view name, std::string_view store) const;
  /// Returns the floor of the finished plans in mode move that have brought `name` here, 0 without
  /// one. Tokens of `name` in this store are above it.
  std::uint64_t floor(std::string_view name) const;
  /// Returns the highest floor of all names, 0 without one.
  std::uint64_t highest_floor() const;
  /// Returns the floor with which `record` is removed from the place of `name`. The record is older
  /// than a finished plan that has moved the lock here. Empty for any other record.
  std::optional<std::uint64_t> opens(std::string_view name, const std::string& record) const;
  /// Returns a failure unless the plan was started with this store.
  asio::awaitable<Failure> check_id(std::string plan, std::string id, std::string store,
                                    TimePoint deadline);

 private:
  Env& env_;
  Backend& backend_;
  std::optional<TimePoint> read_at_;
  asio::awaitable<Failure> read_homes(std::vector<std::string> plans, TimePoint deadline);

  std::map<std::string, Plan> unfinished_;     ///< by name
  std::map<std::string, Plan> finished_;       ///< those in mode move; certificates never change
  std::map<std::string, std::string> unread_;  ///< plans whose text cannot be read, and why
  std::map<std::string, std::string> ids_;     ///< ids of plans that were started with this store
};

}  // namespace dlock::core::migration
