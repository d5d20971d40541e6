// SPDX-License-Identifier: Apache-2.0
//
// From the command line to a LockManager.
#pragma once

#include <string>

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

LockManager open_manager(const Arguments& arguments);

AcquireOptions acquire_options(const Arguments& arguments);

}  // namespace dlock::cli
