// SPDX-License-Identifier: Apache-2.0
//
// Who looks who leads: all of a process on one thread, which is there while there are any. It waits
// for no store: a look is begun, and its outcome told on this thread, so that an observer of a
// store that is silent is in nobody's way.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "dlock/error.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::core {

/// What a look has found.
struct Look {
  error_code error;             ///< set: it is not known
  std::optional<Owner> holder;  ///< empty: nobody
};
using LookDone = std::function<void(const Look&)>;

struct Observation {
  /// Begins to ask the store, and returns. `done` is told once, on any thread, also inside.
  std::function<void(LookDone done)> look;
  std::function<void(const std::optional<Owner>&)> tell;
  std::chrono::milliseconds every{1000};
};

using ObserverId = std::uint64_t;

/// Throws std::system_error if there is no thread for it.
ObserverId observe(Observation what);
/// Looks again at once, if it has not just done so. Any thread.
void look_now(ObserverId id) noexcept;
/// When it returns it is not told any more, unless it is called inside of that.
void stop_observing(ObserverId id) noexcept;

}  // namespace dlock::core
