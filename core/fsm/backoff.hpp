// SPDX-License-Identifier: Apache-2.0
//
// How long to pause before trying again, by Curator's retry policies. Pure: the moment and the
// random bits are handed in.
#pragma once

#include <optional>

#include "core/config/settings.hpp"
#include "dlock/clock.hpp"

namespace dlock::core {

/// One run of failures. The exponential pauses are jittered over their upper half, so that clients
/// that failed together do not return together.
class Backoff {
 public:
  explicit Backoff(RetryPolicy policy) : policy_(policy) {}

  /// After a failure: how long to pause, or nothing if the policy gives up. `random`: 64 random
  /// bits.
  std::optional<Duration> next(TimePoint now, std::uint64_t random);

  /// After a success: the next failure is a first one.
  void reset() noexcept;

 private:
  RetryPolicy policy_;
  int failures_ = 0;
  TimePoint first_failure_{};
};

}  // namespace dlock::core
