// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/rules/placement.hpp"

#include <fmt/format.h>
#include <libmemcached/memcached.h>

#include <charconv>
#include <cstdint>
#include <new>

#include "dlock/spi/name.hpp"

namespace dlock::memcached {
namespace {

/// libmemcached aborts the process if ketama has more servers.
constexpr std::size_t kMostKetamaServers = 100;

void check(const StoreOptions& options, std::string_view distribution) {
  if (distribution == "modula") return;
  const auto& label = options.string("server_list");
  if (!label.empty()) {
    refuse_option(options, "server_list",
                  fmt::format("server_list '{}' cannot be used with distribution {}, which hashes "
                              "the addresses: remove server_list and use the same addresses in "
                              "all clients, or write distribution=modula",
                              label, distribution));
  }
  if (options.endpoints.size() > kMostKetamaServers) {
    refuse_option(options, "distribution",
                  fmt::format("distribution {} has at most {} servers, and this list has {}: "
                              "remove servers, or write distribution=modula",
                              distribution, kMostKetamaServers, options.endpoints.size()));
  }
}

}  // namespace

Placement::Placement(const StoreOptions& options) : servers_(options.endpoints.size()) {
  const auto& distribution = options.string("distribution");
  if (servers_ < 2 || distribution == "sha256") return;
  check(options, distribution);
  hashing_.reset(memcached_create(nullptr));
  if (!hashing_) throw std::bad_alloc();
  for (const auto& server : options.endpoints) {
    const auto added = memcached_server_add(hashing_.get(), server.host.c_str(), server.port);
    if (added != MEMCACHED_SUCCESS) {
      refuse_option(
          options, {},
          fmt::format("libmemcached does not accept the server {}:{} ({}): correct the "
                      "address, or remove distribution={}",
                      server.host, server.port, memcached_strerror(nullptr, added), distribution));
    }
  }
  // The last step, since each server added after it would build the ring again.
  if (distribution != "modula") {
    const auto behavior =
        distribution == "ketama" ? MEMCACHED_BEHAVIOR_KETAMA : MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED;
    if (memcached_behavior_set(hashing_.get(), behavior, 1) != MEMCACHED_SUCCESS) {
      throw std::bad_alloc();
    }
  }
}

std::size_t Placement::server_of(std::string_view name, const KeyMap& keys) const {
  if (!hashing_) return memcached::server_of(name, servers_);
  const auto key = keys.lock_key(name);
  return memcached_generate_hash(hashing_.get(), key.data(), key.size());
}

void Placement::Free::operator()(memcached_st* hashing) const noexcept { memcached_free(hashing); }

std::size_t server_of(std::string_view name, std::size_t servers) {
  if (servers < 2) return 0;
  const auto digest = sha256_hex(name);
  std::uint32_t number = 0;
  std::from_chars(digest.data(), digest.data() + 8, number, 16);
  return number % servers;
}

}  // namespace dlock::memcached
