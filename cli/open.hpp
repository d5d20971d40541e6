// SPDX-License-Identifier: Apache-2.0
//
// From the command line to a LockManager.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/options.hpp"

namespace dlock::cli {

/// All backends built in; warnings go to standard error.
OpenOptions open_options();

/// What --config, --store or the environment name. Throws LockError{config_invalid}.
Config load_config(const Arguments& arguments);

/// Writes --lease into the store of `arguments.name` where the lease belongs to the session.
void apply_lease(const Arguments& arguments, Config& config, const OpenOptions& options);

/// Writes the command of `run` into the stores as what we call ourselves, where the configuration
/// has no `app`.
void name_ourselves(const Arguments& arguments, Config& config);

/// The words of a command that everybody may see: up to its first option or assignment, 64 bytes at
/// most.
std::string visible_words(const std::vector<std::string>& command);

/// Verbs that only look give up early on a store that is not there, if `connect_timeout` does not
/// say how long.
void be_impatient(Config& config);

LockManager open_manager(const Arguments& arguments);
LockManager open_manager(const Arguments& arguments, Config config);

AcquireOptions acquire_options(const Arguments& arguments);

}  // namespace dlock::cli
