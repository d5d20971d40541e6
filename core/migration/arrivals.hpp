// SPDX-License-Identifier: Apache-2.0
//
// Arrivals: what a store's notes say of the plans that come to it. Read when the store is reached
// and again when a lock is wanted and the last reading is older than kArrivalsAge.
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

#include "core/env.hpp"
#include "core/migration/plan.hpp"
#include "dlock/backend.hpp"

namespace dlock::core::migration {

inline constexpr Duration kArrivalsAge = std::chrono::seconds(10);

/// Loop only.
class Arrivals {
 public:
  Arrivals(Env& env, Backend& backend) : env_(env), backend_(backend) {}

  /// Reads them if they are old; a failure if they cannot be read. `deadline` bounds each request.
  asio::awaitable<Failure> read_if_old(TimePoint deadline);
  /// The link was lost or the store reached anew: the next reading is due.
  void forget() noexcept { read_at_.reset(); }

  /// A clear `error` if a client that knows only this store may lock `name` in it.
  Failure admit(std::string_view name, std::string_view store) const;
  /// A clear `error` if this is the store that the plan was started with.
  asio::awaitable<Failure> check_id(std::string plan, std::string id, std::string store,
                                    TimePoint deadline);

 private:
  asio::awaitable<Failure> read(TimePoint deadline);

  Env& env_;
  Backend& backend_;
  std::optional<TimePoint> read_at_;
  std::map<std::string, Plan> unfinished_;     ///< by name
  std::map<std::string, std::string> unread_;  ///< plans whose text cannot be read, and why
  std::map<std::string, std::string> ids_;     ///< of plans, known to be this store's
};

}  // namespace dlock::core::migration
