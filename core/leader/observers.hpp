// SPDX-License-Identifier: Apache-2.0
//
// Who looks who leads: all of a process on one thread, which is there while there are any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dlock/lock_status.hpp"

namespace dlock::core {

struct Observation {
  /// Asks the store. Throws LockError.
  std::function<std::optional<Owner>()> look;
  std::function<void(const std::optional<Owner>&)> tell;
  std::chrono::milliseconds every{1000};
};

using ObserverId = std::uint64_t;

/// Throws std::system_error if there is no thread for it.
ObserverId observe(Observation what);
/// Looks again at once.
void look_now(ObserverId id) noexcept;
/// When it returns it is not told any more, unless it is called inside of that.
void stop_observing(ObserverId id) noexcept;

}  // namespace dlock::core
