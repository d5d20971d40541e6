// SPDX-License-Identifier: Apache-2.0
//
// The options of a `memcached://` URL and its YAML block, beyond those of every store.
#pragma once

#include <vector>

#include "dlock/spi/options.hpp"

namespace dlock::memcached {

std::vector<OptionSpec> option_specs();

/// Throws LockError{config_invalid} for what the specs cannot express.
void check_options(const StoreOptions& options);

}  // namespace dlock::memcached
