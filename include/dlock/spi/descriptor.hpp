// SPDX-License-Identifier: Apache-2.0
//
// How the rest of dlock learns of a backend: one object, in OpenOptions::backends.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "dlock/spi/backend.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/event_sink.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::inline v0 {

/// One object per backend, of static storage. The backends of this build are listed by the build;
/// another is handed over: `OpenOptions{.backends = {&mine}}`.
struct BackendDescriptor {
  std::string_view name;                  ///< `zookeeper`
  std::vector<std::string_view> schemes;  ///< `zookeeper`, `zk`
  enum class Address { hosts, path, name } address = Address::hosts;
  std::uint16_t default_port = 0;
  std::vector<OptionSpec> options;
  /// The option that --lease sets: `session_timeout`, `lease`; empty: there is no lease.
  std::string_view lease_option;
  /// Schemes that users try and that cannot work, with the reason (`zk+tls`).
  std::vector<std::pair<std::string_view, std::string_view>> refused_schemes = {};
  /// Throws LockError{config_invalid} for what the specs cannot express. No I/O. `env` and `sink`
  /// outlive the backend.
  std::unique_ptr<Backend> (*create)(const StoreOptions& options, Env& env, EventSink& sink);
  /// Those of `schemes` whose address is a path, whatever `address` says: sockets in the file
  /// system (`redis+unix`).
  std::vector<std::string_view> path_schemes = {};
  /// Claims may be of mode shared. Known before the store is reached, so that who asks for it in
  /// vain is told at once; Capabilities::shared_mode says the same.
  bool has_shared_mode = false;
  /// Claims may be of a semaphore's permits: likewise, with Capabilities::permits.
  bool has_permits = false;
  /// If not: why, for who asks for them.
  std::string_view why_no_permits = "it keeps one holder for each name";
  /// Grants may be exported and adopted: likewise, with Capabilities::can_adopt.
  bool has_adoption = false;
  /// If not: why, for who asks for it.
  std::string_view why_no_adoption = "it cannot give a claim to another owner";
};

/// The one that serves the store's URL. Throws LockError{config_invalid}: none does, or it is no
/// URL; MissingReference.
const BackendDescriptor& find_backend(const StoreConfig& store,
                                      std::span<const BackendDescriptor* const> backends);

}  // namespace dlock::inline v0
