// SPDX-License-Identifier: Apache-2.0
//
// What a `redis://`, `rediss://` or `redis+unix://` URL and a YAML block may say, beyond what holds
// for every store.
#pragma once

#include <vector>

#include "backends/redis/wire/dial.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::redis {

std::vector<OptionSpec> option_specs();

/// Where and how to connect. Throws LockError{config_invalid} for what the specs cannot express.
DialSettings dial_settings(const StoreOptions& options);

}  // namespace dlock::redis
