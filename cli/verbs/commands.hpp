// SPDX-License-Identifier: Apache-2.0
//
// One function per verb; each returns the exit status and throws LockError for what main() tells.
#pragma once

#include "cli/arguments.hpp"
#include "dlock/lock_manager.hpp"
#include "program/signals.hpp"

namespace dlock::cli {

int run(const Arguments& arguments);
int hold(const Arguments& arguments, bool stdin_ends_it);
int show_status(const Arguments& arguments);
int list(const Arguments& arguments);
int break_lock(const Arguments& arguments);
/// `break --ask`.
int ask_for_lock(LockManager& locks, const Arguments& arguments, program::Signals& signals);
/// Marks the record of the holder with `token`, waits until it is free, and prints the outcome.
/// Returns the exit status.
int break_and_wait(LockManager& locks, const Arguments& arguments, std::uint64_t token,
                   program::Signals& signals);
int doctor(const Arguments& arguments);
int set_semaphore(const Arguments& arguments);
int show_semaphore(const Arguments& arguments);
int migrate(const Arguments& arguments);
/// Executes dlock-compare in this process. Returns the exit status if that fails.
int compare(const std::vector<std::string>& words);
/// Returns why `compare` cannot run; empty if dlock-compare is installed.
std::string missing_compare();

}  // namespace dlock::cli
