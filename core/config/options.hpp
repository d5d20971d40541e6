// SPDX-License-Identifier: Apache-2.0
//
// From what was written about one store to what its backend and the core take from it, every value
// checked against a table. Reads the secrets' environment variables and files; no other I/O.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/settings.hpp"
#include "dlock/backend.hpp"
#include "dlock/config.hpp"

namespace dlock::core {

struct ResolvedStore {
  const BackendDescriptor* backend = nullptr;
  StoreOptions options;    ///< the backend's
  StoreSettings settings;  ///< the core's
};

/// Throws LockError{config_invalid}: origin, store, key, value, and what to write instead.
ResolvedStore resolve_store(const StoreConfig& store,
                            std::span<const BackendDescriptor* const> backends);

/// The backend that serves the store's URL. Throws like resolve_store().
const BackendDescriptor& find_backend(const StoreConfig& store,
                                      std::span<const BackendDescriptor* const> backends);

/// The options that the core takes from any store's configuration (`retry` has keys of its own).
std::span<const OptionSpec> core_options();

/// Checks one value and puts it into `options` (text, and number where it is one).
/// Empty, or what is wrong with it and what to write.
std::string apply_option(const OptionSpec& spec, std::string_view value, StoreOptions& options);

/// Writes `key` over whatever the URL's query or the settings say: for `--lease`.
void override_setting(StoreConfig& store, const Setting& setting);

/// The program's name, the default of `app`.
std::string program_name();

}  // namespace dlock::core
