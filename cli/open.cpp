// SPDX-License-Identifier: Apache-2.0
#include "cli/open.hpp"

#include <fmt/format.h>

#include "dlock/duration.hpp"
#include "dlock/spi/descriptor.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::printable;
using program::warn;

OpenOptions open_options() {
  OpenOptions options = OpenOptions::built_in();
  options.log_losses = false;  // the commands say so themselves
  options.log = [](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warn(text);
    if (level == LogLevel::error) complain(text);
  };
  return options;
}

Config load_config(const Arguments& arguments) {
  if (!arguments.config_file.empty()) return Config::from_file(arguments.config_file);
  if (!arguments.store_url.empty()) {
    return Config::from_url(arguments.store_url, {"--store", 0, 0});
  }
  return Config::from_environment();
}

void apply_lease(const Arguments& arguments, Config& config, const OpenOptions& options) {
  if (!arguments.lease) return;
  const RouteConfig* route = config.route(arguments.name);
  if (route == nullptr) return;  // lock() says so, better
  for (StoreConfig& store : config.stores) {
    if (store.name != route->store) continue;
    const auto& backend = find_backend(store, options.backends);
    if (backend.lease_option.empty() || backend.lease_option == "lease") continue;
    store.set(
        {std::string(backend.lease_option), format_duration(*arguments.lease), {"--lease", 0, 0}});
  }
}

void refuse_one_process(const Arguments& arguments, const Config& config,
                        const OpenOptions& options) {
  const RouteConfig* route = arguments.name.empty() ? nullptr : config.route(arguments.name);
  if (route == nullptr) return;
  for (const StoreConfig& store : config.stores) {
    const bool leads_to_it =
        store.name == route->store || (route->migrate && store.name == route->migrate->to);
    if (!leads_to_it) continue;
    // One that is a name and nothing more lives in this process alone.
    const auto& backend = find_backend(store, options.backends);
    if (backend.address != BackendDescriptor::Address::name) continue;
    Diagnostics why;
    why.store = store.name;
    why.server_text = fmt::format(
        "{}: a store of the kind `{}` excludes nobody outside one process, so a command would "
        "guard nothing with it; write one that others reach, for example file:///var/lib/app/locks",
        store.origin.text(), backend.name);
    throw LockError(make_error_code(errc::config_invalid), std::move(why));
  }
}

std::string visible_words(const std::vector<std::string>& command) {
  constexpr std::size_t kMost = 64;
  std::string text;
  for (const auto& word : command) {
    // Passwords stand behind options, in assignments and in URLs.
    const bool may_hide_one =
        word.empty() || word.front() == '-' || word.find_first_of("=@") != std::string::npos;
    if (!text.empty() && may_hide_one) break;
    if (!text.empty()) text += ' ';
    text += printable(word.substr(0, word.find_first_of("=@")));
  }
  if (text.size() <= kMost) return text;
  std::size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

void name_ourselves(const Arguments& arguments, Config& config) {
  if (arguments.verb != Verb::run || arguments.hide_command) return;
  const auto words = visible_words(arguments.command);
  if (words.empty()) return;
  for (StoreConfig& store : config.stores) {
    if (!store.has("app")) {
      store.settings.push_back({"app", words, {"the command", 0, 0}});
    }
  }
}

void be_impatient(Config& config) {
  for (StoreConfig& store : config.stores) {
    if (store.has("connect_timeout")) continue;
    store.settings.push_back({"connect_timeout", "2500ms", {"dlock", 0, 0}});
  }
}

LockManager open_manager(const Arguments& arguments) {
  return open_manager(arguments, load_config(arguments));
}

LockManager open_manager(const Arguments& arguments, Config config) {
  OpenOptions options = open_options();
  refuse_one_process(arguments, config, options);
  apply_lease(arguments, config, options);
  name_ourselves(arguments, config);
  const bool looks_only = arguments.verb == Verb::status || arguments.verb == Verb::list ||
                          arguments.verb == Verb::break_lock;
  if (looks_only) be_impatient(config);
  return LockManager::from_config(std::move(config), std::move(options));
}

AcquireOptions acquire_options(const Arguments& arguments) {
  AcquireOptions options;
  options.wait = arguments.wait;
  options.lease = arguments.lease;
  if (arguments.shared) options.mode = Mode::shared;
  options.max_hold = arguments.max_hold;
  options.max_queue = arguments.max_queue;
  options.head_start = arguments.head_start.value_or(std::chrono::milliseconds(0));
  options.progress_every = arguments.progress_every;
  options.revocable = arguments.on_revoke != 0;
  return options;
}

}  // namespace dlock::cli
