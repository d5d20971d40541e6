// SPDX-License-Identifier: Apache-2.0
//
// exit() while this process leads: stops the work, renews meanwhile, then releases; 5 s at most.
// Begins before those static objects are destroyed that were made before the first campaign.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

namespace dlock::core {

class EndsAtExit {
 public:
  virtual ~EndsAtExit() = default;
  virtual void request_end() noexcept = 0;
  /// Returns at `until` at the latest. On its own thread it ends here and now.
  virtual void wait_end(std::chrono::steady_clock::time_point until) noexcept = 0;
};

void end_at_exit(const std::shared_ptr<EndsAtExit>& what);

/// The process ends: until when it may be waited for.
std::optional<std::chrono::steady_clock::time_point> exit_deadline() noexcept;

}  // namespace dlock::core
