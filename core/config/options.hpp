// SPDX-License-Identifier: Apache-2.0
//
// Converts the configuration of one store into the settings of its backend and of the core, with
// every value checked against a table. Reads the secrets' environment variables and files; no other
// I/O.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/settings.hpp"
#include "dlock/config.hpp"
#include "dlock/error.hpp"
#include "dlock/spi/descriptor.hpp"

namespace dlock::core {

struct ResolvedStore {
  const BackendDescriptor* backend = nullptr;
  StoreOptions options;    ///< the backend's
  StoreSettings settings;  ///< the core's
};

/// Throws LockError{config_invalid}: origin, store, key, value, and what to write instead; of a
/// secret or a URL that is not where it should be, MissingReference.
ResolvedStore resolve_store(const StoreConfig& store,
                            std::span<const BackendDescriptor* const> backends);

/// Returns a replacement for a store with a MissingReference: each use of it fails with `error`.
ResolvedStore unusable_store(const StoreConfig& store, const LockError& error);

/// The options that the core reads from any store's configuration (`retry` has separate keys).
std::span<const OptionSpec> core_options();

/// Checks one value and puts it into `options` (text, and number where it is one).
/// Empty, or what is wrong with it and what to write.
std::string apply_option(const OptionSpec& spec, std::string_view value, StoreOptions& options);

/// The program's name, the default of `app`.
std::string program_name();

}  // namespace dlock::core
