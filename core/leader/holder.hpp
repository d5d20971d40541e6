// SPDX-License-Identifier: Apache-2.0
//
// The holder of a lock, for observers: a read without a wait, and the store's notification that one
// is due. Any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/leader/observers.hpp"
#include "dlock/error.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::core {

class Engine;

/// Reads the holder of the lock, as LockManager::status() would show it; empty: no client holds it.
/// The engine outlives the read. `done` is called once, on the loop or inside.
void look_at_holder(Engine& engine, const std::string& name, LookDone done);

/// From now on that observer reads at once when the store notifies it. Its own polling finds
/// changes that the store cannot report.
void watch_holder(Engine& engine, const std::string& name, ObserverId observer);
void unwatch_holder(Engine& engine, const std::string& name, ObserverId observer);
/// This process has begun to hold it, or has ended: for stores that do not see that.
void tell_holder_changed(Engine& engine, const std::string& name);

}  // namespace dlock::core
