// SPDX-License-Identifier: Apache-2.0
#include "cli/open.hpp"

#include "cli/output.hpp"
#include "core/config/duration.hpp"
#include "core/config/environment.hpp"
#include "core/config/options.hpp"
#include "core/routes.hpp"

namespace dlock::cli {

OpenOptions open_options() {
  OpenOptions options = OpenOptions::built_in();
  options.log = [](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) complain("warning: " + std::string(text));
    if (level == LogLevel::error) complain(text);
  };
  return options;
}

Config load_config(const Arguments& arguments) {
  if (!arguments.config_file.empty()) return Config::from_file(arguments.config_file);
  if (!arguments.store_url.empty()) {
    return core::config_from_url(arguments.store_url, {"--store", 0, 0});
  }
  return core::config_from_environment();
}

void apply_lease(const Arguments& arguments, Config& config, const OpenOptions& options) {
  if (!arguments.lease) return;
  const core::Routes routes(config.locks);
  const RouteConfig* route = routes.find(arguments.name);
  if (route == nullptr) return;  // lock() says so, better
  for (StoreConfig& store : config.stores) {
    if (store.name != route->store) continue;
    const auto& backend = core::find_backend(store, options.backends);
    if (backend.lease_option.empty() || backend.lease_option == "lease") continue;
    core::override_setting(store, {std::string(backend.lease_option),
                                   core::format_duration(*arguments.lease),
                                   {"--lease", 0, 0}});
  }
}

LockManager open_manager(const Arguments& arguments) {
  Config config = load_config(arguments);
  OpenOptions options = open_options();
  apply_lease(arguments, config, options);
  return LockManager::from_config(std::move(config), std::move(options));
}

AcquireOptions acquire_options(const Arguments& arguments) {
  AcquireOptions options;
  options.wait = arguments.wait;
  options.lease = arguments.lease;
  return options;
}

}  // namespace dlock::cli
