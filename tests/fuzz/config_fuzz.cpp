// SPDX-License-Identifier: Apache-2.0
//
// A configuration file, all the way to the options of each store: YAML, routes, URLs, settings of
// every kind, retry policies, the seed starter's block.
#include <array>

#include "core/config/options.hpp"
#include "core/config/routes.hpp"
#include "dlock/config.hpp"
#include "dlock/error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

using Kind = OptionSpec::Kind;
using Address = BackendDescriptor::Address;

constexpr std::string_view kFile = "fuzz.yaml";

/// Stores with an option of each kind; never created.
BackendDescriptor keeper() {
  BackendDescriptor backend{};
  backend.name = "zookeeper";
  backend.schemes = {"zookeeper", "zk"};
  backend.default_port = 2181;
  backend.options = {{"session_timeout", Kind::duration, "10s", 300, 60'000},
                     {"acl", Kind::choice, "open", 0, INT64_MAX, "open|creator"},
                     {"chroot", Kind::text},
                     {"token", Kind::secret}};
  backend.lease_option = "session_timeout";
  backend.refused_schemes = {{"zk+tls", "no TLS"}};
  return backend;
}

BackendDescriptor cache() {
  BackendDescriptor backend{};
  backend.name = "redis";
  backend.schemes = {"redis", "redis+unix"};
  backend.default_port = 6379;
  backend.options = {{"lease", Kind::duration, "30s", 100, 3'600'000},
                     {"db", Kind::integer, "0", 0, 1'000'000},
                     {"tls_verify", Kind::boolean, "true"}};
  backend.lease_option = "lease";
  backend.path_schemes = {"redis+unix"};
  return backend;
}

BackendDescriptor folder() {
  BackendDescriptor backend{};
  backend.name = "local";
  backend.schemes = {"file"};
  backend.address = Address::path;
  return backend;
}

BackendDescriptor memory() {
  BackendDescriptor backend{};
  backend.name = "memory";
  backend.schemes = {"memory"};
  backend.address = Address::name;
  return backend;
}

void check_numbers(const BackendDescriptor& backend, const StoreOptions& options) {
  for (const auto& spec : backend.options) {
    const auto number = options.number.find(spec.name);
    if (number == options.number.end() || spec.kind == Kind::boolean) continue;
    require(number->second >= spec.min && number->second <= spec.max, "a number is in its range");
  }
}

/// False: it was refused, in the one way there is.
template <class Function>
bool accepted(Function&& function, std::string_view place) {
  try {
    function();
    return true;
  } catch (const LockError& error) {
    require(error.code() == errc::config_invalid, "a bad configuration has one code");
    require(!error.server_text().empty(), "an error says what is wrong");
    require(error.server_text().find(place) != std::string::npos, "an error says where");
    return false;
  }
}

void check(const Config& config) {
  static const std::array all{keeper(), cache(), folder(), memory()};
  static const std::array<const BackendDescriptor*, 4> backends{&all[0], &all[1], &all[2], &all[3]};
  require(!config.stores.empty() && !config.locks.empty(), "a configuration has a store");
  for (const auto& route : config.locks) {
    require(core::pattern_error(route.match).empty(), "a route has a pattern");
    bool known = false;
    for (const auto& store : config.stores) known = known || store.name == route.store;
    require(known, "a route leads to a store");
  }
  for (const auto& store : config.stores) {
    accepted(
        [&] {
          const auto resolved = core::resolve_store(store, backends);
          check_numbers(*resolved.backend, resolved.options);
          const auto& settings = resolved.settings;
          require(settings.connect_timeout.count() >= 100, "a timeout is in its range");
          require(settings.retry.max >= settings.retry.base || settings.retry.times ||
                      settings.retry.elapsed || settings.retry.base.count() >= 1,
                  "a retry policy has a pause");
        },
        "");
  }
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dlock;
  using namespace dlock::fuzz;
  Config config;
  const bool read =
      accepted([&] { config = Config::from_yaml(as_text(data, size), std::string(kFile)); }, kFile);
  if (read) check(config);
  return 0;
}
