// SPDX-License-Identifier: Apache-2.0
//
// Polls the leaders for all observers of a process, on one thread. It exits with the last observer.
// It waits for no store: a read is only begun, and its result is reported on this thread. So an
// observer of a store that does not answer delays no other.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "dlock/error.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::core {

/// The result of a read.
struct Look {
  error_code error;             ///< set: it is not known
  std::optional<Owner> holder;  ///< empty: none
};
using LookDone = std::function<void(const Look&)>;

struct Observation {
  /// Begins to ask the store, and returns. `done` is called once, on any thread, also inside.
  std::function<void(LookDone done)> look;
  std::function<void(const std::optional<Owner>&)> tell;
  std::chrono::milliseconds every{1000};
};

using ObserverId = std::uint64_t;

/// Throws std::system_error if no thread can be made for it.
ObserverId observe(Observation what);
/// Reads again at once, unless it has just done so. Any thread.
void look_now(ObserverId id) noexcept;
/// When it returns `tell` is not called any more, unless this is called inside of that.
void stop_observing(ObserverId id) noexcept;

}  // namespace dlock::core
