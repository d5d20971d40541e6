// SPDX-License-Identifier: Apache-2.0
#include "core/config/written.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/config/fail.hpp"
#include "core/config/routes.hpp"
#include "core/config/secret.hpp"

namespace dlock::core {

namespace {

constexpr std::string_view kUrlReference = "url_env";

/// Empty counts as unset: that is how a shell switches a variable off for one command.
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read at open
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

StoreConfig with_url(const StoreConfig& store) {
  StoreConfig read = store;
  for (const Setting& setting : store.settings) {
    if (setting.key != kUrlReference) continue;
    auto value = secret_from_environment(setting.value);
    if (!value) {
      throw MissingReference(config_message(
          setting.origin, store.name,
          fmt::format("url_env: {}; set it to a URL, for example redis://host", value.error)));
    }
    read.url = std::move(*value.value);
    std::erase_if(read.settings, [](const Setting& one) { return one.key == kUrlReference; });
    break;
  }
  return read;
}

ParsedUrl parse_store_url(const StoreConfig& store) {
  auto url = parse_url(store.url);
  if (!url) {
    fail_config(store.origin, store.name,
                fmt::format("url: '{}': {}", redacted_url(store.url), url.error));
  }
  return std::move(*url.value);
}

}  // namespace dlock::core

namespace dlock::inline v0 {

MissingReference::MissingReference(std::string text)
    : LockError(make_error_code(errc::config_invalid), {{}, {}, std::move(text)}) {}

bool StoreConfig::has(std::string_view key) const {
  const auto is_it = [key](const Setting& setting) { return setting.key == key; };
  if (std::any_of(settings.begin(), settings.end(), is_it)) return true;
  try {
    const std::string whole = core::with_url(*this).url;
    return core::without_parameter(whole, key) != whole;
  } catch (const MissingReference&) {
    return false;
  }
}

void StoreConfig::set(const Setting& setting) {
  *this = core::with_url(*this);
  url = core::without_parameter(url, setting.key);
  std::erase_if(settings, [&](const Setting& old) { return old.key == setting.key; });
  settings.push_back(setting);
}

std::string StoreConfig::place() const {
  const StoreConfig store = core::with_url(*this);
  std::string place = core::without_credentials(store.url);
  for (const Setting& setting : store.settings) {
    const bool moves_it = setting.key == "key" || setting.key == "db" || setting.key == "chroot";
    if (moves_it) place += fmt::format("\n{}={}", setting.key, setting.value);
  }
  return place;
}

Config Config::from_environment() {
  const std::string_view file = core::variable("DLOCK_CONFIG");
  const std::string_view url = core::variable("DLOCK_STORE");
  if (!file.empty() && !url.empty()) {
    core::fail_config({}, {}, "both DLOCK_CONFIG and DLOCK_STORE are set; unset one of them");
  }
  if (!file.empty()) return from_file(std::string(file));
  if (!url.empty()) return from_url(url, {"DLOCK_STORE"});
  core::fail_config({}, {},
                    "no store is named; set DLOCK_STORE to a URL (file:///var/lib/app/locks) or "
                    "DLOCK_CONFIG to a file");
}

const RouteConfig* Config::route(std::string_view lock) const {
  return core::first_match(locks, lock);
}

}  // namespace dlock::inline v0
