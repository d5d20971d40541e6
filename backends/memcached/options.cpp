// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/memcached/backend.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/names.hpp"
#include "dlock/memcached.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::memcached {
namespace {

std::unique_ptr<Backend> create(const StoreOptions& options, Env& env, EventSink& sink) {
  check_options(options);
  return std::make_unique<MemcachedBackend>(options, env, sink);
}

constexpr std::string_view kNoTls =
    "the Memcached store has no TLS: use memcached:// through a TLS proxy on this machine";

}  // namespace

std::vector<OptionSpec> option_specs() {
  using Kind = OptionSpec::Kind;
  std::vector<OptionSpec> specs;
  specs.push_back({.name = "lease",
                   .kind = Kind::duration,
                   .default_value = "30s",
                   .min = kShortestLease.count(),
                   .max = kLongestLease.count(),
                   .choices = {},
                   .help = "how long a dead holder keeps the lock; memcached counts whole seconds, "
                           "and reads more than 30 days as a date"});
  specs.push_back({.name = "key",
                   .kind = Kind::text,
                   .default_value = "dlock:{name}",
                   .choices = {},
                   .help = "a lock's key; {name} stands for the lock's name"});
  specs.push_back({.name = "poll_interval",
                   .kind = Kind::duration,
                   .default_value = "10ms",
                   .min = 1,
                   .max = 60'000,
                   .choices = {},
                   .help = "how often a waiter polls at first; one request for all waiters"});
  specs.push_back({.name = "poll_interval_max",
                   .kind = Kind::duration,
                   .default_value = "50ms",
                   .min = 1,
                   .max = 60'000,
                   .choices = {},
                   .help = "how rarely a waiter polls at last"});
  specs.push_back({.name = "flags",
                   .kind = Kind::integer,
                   .default_value = "0",
                   .min = 0,
                   .max = UINT32_MAX,
                   .choices = {},
                   .help = "the flags of a lock's item; 1 where tooz reads it, too"});
  specs.push_back({.name = "distribution",
                   .kind = Kind::choice,
                   .default_value = "sha256",
                   .choices = "sha256|modula|ketama|ketama_weighted",
                   .help = "which of several servers keeps a lock: sha256 of its name, or the one "
                           "that libmemcached's clients choose for its key"});
  specs.push_back({.name = "server_list",
                   .kind = Kind::text,
                   .choices = {},
                   .help = "a name for the list of servers, the same for all clients, where their "
                           "addresses differ from client to client"});
  return specs;
}

void check_options(const StoreOptions& options) {
  if (options.endpoints.empty()) {
    refuse_option(options, {}, "a Memcached URL names its servers: memcached://host1,host2");
  }
  if (options.path.size() > 1) {
    refuse_option(options, {},
                  fmt::format("the path '{0}' means nothing to Memcached: write it into the keys, "
                              "key={1}:{{name}}",
                              options.path, options.path.substr(1)));
  }
  if (!options.username.empty() || !options.password.empty()) {
    refuse_option(
        options, {},
        "Memcached's text protocol knows no login here: leave user and password out, and guard "
        "the server's port");
  }
  const auto& key = options.string("key");
  if (const auto error = key_template_error(key); !error.empty()) {
    refuse_option(options, "key", fmt::format("key '{}': {}", key, error));
  }
  const auto& label = options.string("server_list");
  const bool plain = std::all_of(label.begin(), label.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7F;
  });
  if (label.size() > 100 || !plain) {
    refuse_option(options, "server_list", "server_list has at most 100 characters, and no spaces");
  }
  if (options.duration("poll_interval") > options.duration("poll_interval_max")) {
    refuse_option(options, "poll_interval", "poll_interval is longer than poll_interval_max");
  }
}

const BackendDescriptor& backend() {
  static const BackendDescriptor descriptor{
      .name = "memcached",
      .schemes = {"memcached"},
      .address = BackendDescriptor::Address::hosts,
      .default_port = 11211,
      .options = option_specs(),
      .lease_option = "lease",
      .refused_schemes = {{"memcached+tls", kNoTls}},
      .create = &create,
      .why_no_permits = "the server may drop any item, and with it the holders of permits",
      .has_adoption = true,
  };
  return descriptor;
}

}  // namespace dlock::memcached
