// SPDX-License-Identifier: Apache-2.0
//
// The command of `dlock run` under a lock that is held, for all kinds of `run`.
#pragma once

#include <optional>
#include <string>

#include "cli/arguments.hpp"
#include "cli/process/progress_file.hpp"
#include "dlock/clock.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/lock_manager.hpp"
#include "program/signals.hpp"

namespace dlock::cli {

struct Ran {
  int status = 0;  ///< the command's own, or why it was not started
  bool has_started = false;
  bool was_lost = false;         ///< the lock, or it could not be renewed: the command was ended
  bool has_overrun = false;      ///< it was ended at `over_at`
  bool was_told_to_end = false;  ///< we were, and passed it on
};

/// `progress`: null, or what the command touches. Returns when the command has ended; the caller
/// gives the lock back after that.
Ran run_command(const Arguments& arguments, LockHandle& handle, const std::string& id,
                program::Signals& signals, ProgressFile* progress,
                std::optional<TimePoint> over_at = std::nullopt);

/// Says so; the exit status.
int tell_lost(const Arguments& arguments, const Ran& ran);

/// --leader: stands, runs the command while it leads, stands again after a loss.
int run_leader(const Arguments& arguments, LockManager& locks, const std::string& id,
               program::Signals& signals, ProgressFile* progress);
/// --at-most-for.
int run_scheduled(const Arguments& arguments, LockManager& locks, const std::string& id,
                  program::Signals& signals);

}  // namespace dlock::cli
