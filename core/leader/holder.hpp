// SPDX-License-Identifier: Apache-2.0
//
// Who holds a lock, for observers: a look that nobody waits for, and the store's word that it is
// time for one. Any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/leader/observers.hpp"
#include "dlock/error.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::core {

class Engine;

/// Who holds the lock, as LockManager::status() would show it; empty: nobody. The engine outlives
/// the look. `done` is told once, on the loop or inside.
void look_at_holder(Engine& engine, const std::string& name, LookDone done);

/// From now on that observer looks at once when the store tells that it is time. What it cannot
/// tell is found by the observer's own looks.
void watch_holder(Engine& engine, const std::string& name, ObserverId observer);
void unwatch_holder(Engine& engine, const std::string& name, ObserverId observer);
/// This process has begun to hold it, or has ended: for stores that do not see that.
void tell_holder_changed(Engine& engine, const std::string& name);

}  // namespace dlock::core
