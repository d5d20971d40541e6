// SPDX-License-Identifier: Apache-2.0
#include "cli/open.hpp"

#include <fmt/format.h>

#include "cli/output.hpp"
#include "core/config/duration.hpp"
#include "core/config/environment.hpp"
#include "core/config/options.hpp"
#include "core/routes.hpp"
#include "dlock/backend.hpp"

namespace dlock::cli {

OpenOptions open_options() {
  OpenOptions options = OpenOptions::built_in();
  options.log_losses = false;  // the commands say so themselves
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

void refuse_one_process(const Arguments& arguments, const Config& config,
                        const OpenOptions& options) {
  const core::Routes routes(config.locks);
  const RouteConfig* route = arguments.name.empty() ? nullptr : routes.find(arguments.name);
  if (route == nullptr) return;
  for (const StoreConfig& store : config.stores) {
    const bool leads_to_it =
        store.name == route->store || (route->migrate && store.name == route->migrate->to);
    // One that is a name and nothing more lives in this process alone.
    const auto& backend = core::find_backend(store, options.backends);
    if (!leads_to_it || backend.address != BackendDescriptor::Address::name) continue;
    Diagnostics why;
    why.store = store.name;
    why.server_text = fmt::format(
        "{}: a store of the kind `{}` excludes nobody outside one process, so a command would "
        "guard nothing with it; write one that others reach, for example file:///var/lib/app/locks",
        store.origin.text(), backend.name);
    throw LockError(make_error_code(errc::config_invalid), std::move(why));
  }
}

LockManager open_manager(const Arguments& arguments) {
  Config config = load_config(arguments);
  OpenOptions options = open_options();
  refuse_one_process(arguments, config, options);
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
