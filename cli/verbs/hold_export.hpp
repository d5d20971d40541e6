// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/arguments.hpp"
#include "dlock/lock_manager.hpp"
#include "program/signals.hpp"

namespace dlock::cli {

/// Prints the text of the grant, and keeps it until somebody adopts it; the exit status.
int hold_export(LockManager& locks, const Arguments& arguments, LockHandle handle,
                program::Signals& signals);

}  // namespace dlock::cli
