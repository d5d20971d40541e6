// SPDX-License-Identifier: Apache-2.0
//
// Access to the engine of a LockManager, for code above it.
#pragma once

#include <memory>
#include <string>

#include "dlock/lock_manager.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::core {
class Engine;

/// LockManager::status().
LockStatus status_of(Engine& engine, const std::string& name);

}  // namespace dlock::core

namespace dlock::inline v0::detail {

struct ManagerAccess {
  static std::shared_ptr<core::Engine> engine(LockManager& manager);
};

}  // namespace dlock::inline v0::detail
