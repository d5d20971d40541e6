// SPDX-License-Identifier: Apache-2.0
//
// IncomingPlans: what a store's notes say of the plans that come to it. Read when the store is
// reached, so that no lock waits for it; again beside a lock that is wanted when the last reading
// is older than kIncomingPlansAge; and before anybody is refused.
//
// Who knows the target alone must not lock a name of an unfinished plan there: the lock may still
// be held in the source. And two processes that mean two different stores by one name must not take
// part in one plan: each start of a plan has an id, which the records carry and the target's note
// has too.
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

  /// Reads them; a failure if they cannot be read. `deadline` bounds each request.
  asio::awaitable<Failure> read(TimePoint deadline);
  bool were_read() const noexcept { return read_at_.has_value(); }
  bool are_old() const noexcept { return !read_at_ || env_.now() >= *read_at_ + kIncomingPlansAge; }

  /// A clear `error` if a client that knows only this store may lock `name` in it.
  Failure admit(std::string_view name, std::string_view store) const;
  /// Tokens of `name` in this store are above it: of the finished plans with a gate that have
  /// brought it here. 0: there is none.
  std::uint64_t floor(std::string_view name) const;
  /// The highest of all names. 0: there is none.
  std::uint64_t highest_floor() const;
  /// Whether `record`, which stands in the place of `name`, is older than such a plan and closes
  /// the lock for those who know this store alone: the floor to open it with.
  std::optional<std::uint64_t> opens(std::string_view name, const std::string& record) const;
  /// A clear `error` if this is the store that the plan was started with.
  asio::awaitable<Failure> check_id(std::string plan, std::string id, std::string store,
                                    TimePoint deadline);

 private:
  Env& env_;
  Backend& backend_;
  std::optional<TimePoint> read_at_;
  asio::awaitable<Failure> read_homes(std::vector<std::string> plans, TimePoint deadline);

  std::map<std::string, Plan> unfinished_;     ///< by name
  std::map<std::string, Plan> finished_;       ///< those with a gate; certificates never change
  std::map<std::string, std::string> unread_;  ///< plans whose text cannot be read, and why
  std::map<std::string, std::string> ids_;     ///< of plans, known to be this store's
};

}  // namespace dlock::core::migration
