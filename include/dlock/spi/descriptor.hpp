// SPDX-License-Identifier: Apache-2.0
//
// How dlock uses a backend: one object, in OpenOptions::backends.
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

/// One object per backend, of static storage. The build lists the backends of this build; another
/// is passed as `OpenOptions{.backends = {&mine}}`.
struct BackendDescriptor {
  std::string_view name;                  ///< `zookeeper`
  std::vector<std::string_view> schemes;  ///< `zookeeper`, `zk`
  enum class Address { hosts, path, name } address = Address::hosts;
  std::uint16_t default_port = 0;
  std::vector<OptionSpec> options;
  /// The option that --lease sets: `session_timeout`, `lease`; empty: the store has no lease.
  std::string_view lease_option;
  /// Schemes that users try and that cannot work, with the reason (`zk+tls`).
  std::vector<std::pair<std::string_view, std::string_view>> refused_schemes = {};
  /// Throws LockError{config_invalid} for what the specs cannot express. No I/O. `env` and `sink`
  /// outlive the backend.
  std::unique_ptr<Backend> (*create)(const StoreOptions& options, Env& env, EventSink& sink);
  /// Those of `schemes` whose address is a path, whatever `address` says: sockets in the file
  /// system (`redis+unix`).
  std::vector<std::string_view> path_schemes = {};
  /// Claims may be of mode shared. Known before the store is reached, so that an acquire that needs
  /// it fails at once; Capabilities::shared_mode has the same value.
  bool has_shared_mode = false;
  /// Claims may be for a semaphore's permits. Capabilities::permits has the same value.
  bool has_permits = false;
  /// The reason if not, for the error message.
  std::string_view why_no_permits = "it keeps one holder for each name";
  /// Grants may be exported and adopted. Capabilities::can_adopt has the same value.
  bool has_adoption = false;
  /// The reason if not, for the error message.
  std::string_view why_no_adoption = "it cannot pass a claim to another owner";
};

/// Returns the backend for the store's URL. Throws LockError{config_invalid} if none serves it, or
/// it is not a URL; MissingReference.
const BackendDescriptor& find_backend(const StoreConfig& store,
                                      std::span<const BackendDescriptor* const> backends);

}  // namespace dlock::inline v0
