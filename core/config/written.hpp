// SPDX-License-Identifier: Apache-2.0
//
// A store's configuration as it was written, before its backend has checked it.
#pragma once

#include "core/config/url.hpp"
#include "dlock/config.hpp"

namespace dlock::core {

/// `store`, with its URL read from where `url_env` says. Throws MissingReference.
StoreConfig with_url(const StoreConfig& store);

/// Throws LockError{config_invalid}.
ParsedUrl parse_store_url(const StoreConfig& store);

}  // namespace dlock::core
