// SPDX-License-Identifier: Apache-2.0
//
// The options of a `zookeeper://` URL and of a YAML block, beside those of every store.
#pragma once

#include <vector>

#include "dlock/spi/options.hpp"

namespace dlock::zookeeper {

std::vector<OptionSpec> option_specs();

/// Throws LockError{config_invalid} for what the specs cannot express.
void check_options(const StoreOptions& options);

}  // namespace dlock::zookeeper
