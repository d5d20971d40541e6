// SPDX-License-Identifier: Apache-2.0
//
// The options of a `redis://`, `rediss://` or `redis+unix://` URL and of a YAML block, beside those
// of every store.
#pragma once

#include <vector>

#include "backends/redis/wire/dial.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::redis {

std::vector<OptionSpec> option_specs();

/// Where and how to connect. Throws LockError{config_invalid} for what the specs cannot express.
DialSettings dial_settings(const StoreOptions& options);

}  // namespace dlock::redis
