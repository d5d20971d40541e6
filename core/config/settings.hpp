// SPDX-License-Identifier: Apache-2.0
//
// The settings that the core reads from a store's configuration, parsed and checked. They mean the
// same on every store.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dlock::core {

/// When to try a failed request again, under Curator's names. Plain data; core/fsm/backoff.* reads
/// it.
struct RetryPolicy {
  enum class Kind { forever, n_times, one_time, until_elapsed, exponential, bounded_exponential };
  Kind kind = Kind::exponential;
  std::chrono::milliseconds base{
      100};  ///< the first pause; of forever, n-times, until-elapsed: each
  std::chrono::milliseconds max{3000};      ///< the longest pause of the exponential ones
  std::optional<int> times = std::nullopt;  ///< tries after the first; empty: no limit
  std::optional<std::chrono::milliseconds> elapsed = std::nullopt;  ///< for until-elapsed
};

struct StoreSettings {
  std::optional<std::chrono::milliseconds> wait;   ///< default of AcquireOptions::wait
  std::optional<std::chrono::milliseconds> lease;  ///< default of AcquireOptions::lease
  /// `unavailable` once the store has been out of reach this long on end.
  std::chrono::milliseconds connect_timeout{15'000};
  /// It was written, and is not shortened for an acquire that does not wait.
  bool connect_timeout_given = false;
  /// Longest time of one request. Default: a third of the lease, 1 s to 5 s.
  std::optional<std::chrono::milliseconds> request_timeout;
  /// How long release() and closing the manager wait for a release to be confirmed.
  std::chrono::milliseconds release_timeout{5'000};
  /// Taken off every lease. Default: 1 % of the lease, at least 20 ms.
  std::optional<std::chrono::milliseconds> drift_margin;
  /// How long a released lock stays with this process, unless another client asks. 0: not at all.
  std::chrono::milliseconds cache{0};
  /// How often in a row a lock is passed on inside this process while another client waits for it.
  unsigned cohort = 0;
  RetryPolicy retry;
  std::vector<std::string> require;  ///< see core/config/requirements.cpp
  /// `accept: best_effort`: what the store does not promise is known, and not warned of.
  bool accepts_best_effort = false;
  std::optional<std::chrono::milliseconds> max_hold{};  ///< default of AcquireOptions::max_hold
  std::optional<std::uint32_t> max_queue{};             ///< default of AcquireOptions::max_queue
};

}  // namespace dlock::core
