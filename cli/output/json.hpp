// SPDX-License-Identifier: Apache-2.0
//
// The JSON that dlock prints. Names and order are a contract: scripts depend on them, a test pins
// them. What is not known is null, never left out.
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/capabilities.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/schedule.hpp"
#include "dlock/sequencer.hpp"

namespace dlock::cli {

/// One line of `hold`.
struct HoldEvent {
  HandleState state = HandleState::held;
  LossReason reason = LossReason::none;
  std::string name;
  std::string store;
  std::optional<std::uint64_t> token;
  std::optional<std::chrono::nanoseconds> remaining;
  std::optional<Sequencer> sequencer;  ///< the last field of each line
  std::uint32_t permits = 0;           ///< after that, of a semaphore only
  std::string broken_by{};             ///< after `reason`, if it is known
};
std::string to_json(const HoldEvent& event);

/// What `run` does because the lock is going, or why it worries.
struct RunEvent {
  std::string_view event;  ///< suspect, terminating, killed, not_ended, lost
  LossReason reason = LossReason::none;
  std::string name;
  std::optional<std::uint64_t> token;
  std::optional<std::chrono::nanoseconds> remaining;
  std::optional<std::chrono::nanoseconds> margin;  ///< of `terminating`, where there is a deadline
  std::string broken_by{};                         ///< with reason broken
};
std::string to_json(const RunEvent& event);

boost::json::value owner_value(const Owner& owner);
/// `last_run` and `semaphore` are the last fields of `status`; null: there is none, or it is not
/// known.
std::string to_json(const LockStatus& status, const std::optional<RunRecord>& last_run,
                    const std::optional<SemaphoreStatus>& semaphore);
std::string to_json(const std::vector<LockStatus>& locks,
                    const std::vector<SemaphoreStatus>& semaphores);

/// What `break` did.
struct BrokenLock {
  std::string name;
  std::uint64_t token = 0;
  bool of_semaphore = false;
  bool at_once = false;
  /// With `at_once`: how long the old holder may still work. Not `is_free`: how long until it is.
  std::optional<std::chrono::milliseconds> within{};
  bool is_free = true;  ///< false: it is marked only
};
std::string to_json(const BrokenLock& broken);

/// What `break --ask` did, or saw.
struct AskedLock {
  std::string_view event;  ///< asked, gave_way
  std::string name;
  std::optional<std::uint64_t> token;
  std::optional<bool> heard;  ///< empty: not known
};
std::string to_json(const AskedLock& asked);

/// `dlock doctor`'s finding on one store.
struct StoreFinding {
  StoreReport report;
  std::chrono::milliseconds took{0};         ///< to reach it, or to give up
  std::vector<SelfTestReport> self_tests{};  ///< One per server, of a store that has one.
};
std::string to_json(const std::vector<StoreFinding>& findings);

}  // namespace dlock::cli
