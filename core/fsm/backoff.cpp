// SPDX-License-Identifier: Apache-2.0
#include "core/fsm/backoff.hpp"

#include <algorithm>

namespace dlock::core {
namespace {

Duration exponential_pause(const RetryPolicy& policy, int failures, std::uint64_t random) {
  const int doublings = std::min(failures - 1, 20);
  const Duration full =
      std::min<Duration>(policy.base * (std::int64_t{1} << doublings), policy.max);
  constexpr std::uint64_t kSteps = 1024;
  return full / 2 + full / 2 * static_cast<std::int64_t>(random % (kSteps + 1)) /
                        static_cast<std::int64_t>(kSteps);
}

}  // namespace

std::optional<Duration> Backoff::next(TimePoint now, std::uint64_t random) {
  if (failures_ == 0) first_failure_ = now;
  ++failures_;
  switch (policy_.kind) {
    case RetryPolicy::Kind::forever:
      return policy_.base;
    case RetryPolicy::Kind::one_time:
      return failures_ <= 1 ? std::optional<Duration>(policy_.base) : std::nullopt;
    case RetryPolicy::Kind::n_times:
      return failures_ <= policy_.times.value_or(0) ? std::optional<Duration>(policy_.base)
                                                    : std::nullopt;
    case RetryPolicy::Kind::until_elapsed:
      if (now - first_failure_ >= policy_.elapsed.value_or(std::chrono::milliseconds(0))) {
        return std::nullopt;
      }
      return policy_.base;
    case RetryPolicy::Kind::exponential:
    case RetryPolicy::Kind::bounded_exponential:
      if (policy_.times && failures_ > *policy_.times) return std::nullopt;
      return exponential_pause(policy_, failures_, random);
  }
  return std::nullopt;
}

void Backoff::reset() noexcept { failures_ = 0; }

}  // namespace dlock::core
