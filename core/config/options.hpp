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
#include "dlock/config.hpp"
#include "dlock/error.hpp"
#include "dlock/spi/descriptor.hpp"

namespace dlock::core {

struct ResolvedStore {
  const BackendDescriptor* backend = nullptr;
  StoreOptions options;    ///< the backend's
  StoreSettings settings;  ///< the core's
};

/// A variable or a file that the configuration names is not there: the store cannot be used, the
/// others can.
class MissingReference : public LockError {
 public:
  explicit MissingReference(std::string text);
};

/// Throws LockError{config_invalid}: origin, store, key, value, and what to write instead; of a
/// secret or a URL that is not where it should be, MissingReference.
ResolvedStore resolve_store(const StoreConfig& store,
                            std::span<const BackendDescriptor* const> backends);

/// What stands for a store with a MissingReference: each use of it fails with `error`.
ResolvedStore unusable_store(const StoreConfig& store, const LockError& error);

/// The backend that serves the store's URL. Throws like resolve_store().
const BackendDescriptor& find_backend(const StoreConfig& store,
                                      std::span<const BackendDescriptor* const> backends);

/// The options that the core takes from any store's configuration (`retry` has keys of its own).
std::span<const OptionSpec> core_options();

/// Checks one value and puts it into `options` (text, and number where it is one).
/// Empty, or what is wrong with it and what to write.
std::string apply_option(const OptionSpec& spec, std::string_view value, StoreOptions& options);

/// Whether the URL's query or the settings have `key`.
bool has_setting(const StoreConfig& store, std::string_view key);

/// Equal for two stores only if a lock's name means the same lock in both; no user, no password.
/// Throws MissingReference.
std::string place_of(const StoreConfig& store);

/// Writes `key` over whatever the URL's query or the settings say: for `--lease`. Throws
/// MissingReference if the URL is to come from a variable that is not there.
void override_setting(StoreConfig& store, const Setting& setting);

/// The program's name, the default of `app`.
std::string program_name();

}  // namespace dlock::core
