// SPDX-License-Identifier: Apache-2.0
//
// Waiting for a lock in a program that a signal may end meanwhile.
#pragma once

#include <memory>

#include "cli/arguments.hpp"
#include "dlock/lock_manager.hpp"
#include "program/signals.hpp"

namespace dlock::cli {

struct Acquired {
  LockHandle handle;    ///< empty: not acquired
  int exit_status = 0;  ///< then; what there was to say has been said
};

/// Ends early by a signal, with nothing left in the store. On a terminal it says whom it waits for.
Acquired acquire(LockManager& locks, const Arguments& arguments, program::Signals& signals);

}  // namespace dlock::cli
