// SPDX-License-Identifier: Apache-2.0
//
// The default configuration: DLOCK_CONFIG names a file, DLOCK_STORE holds a URL.
#pragma once

#include <string_view>

#include "dlock/config.hpp"

namespace dlock::core {

/// Throws LockError{config_invalid} if neither is set, or both.
Config config_from_environment();

/// Config::from_url() for a URL that was written elsewhere than in the program: `origin` says
/// where.
Config config_from_url(std::string_view url, Origin origin);

}  // namespace dlock::core
