// SPDX-License-Identifier: Apache-2.0
#include "core/config/environment.hpp"

#include <cstdlib>

#include "core/config/fail.hpp"

namespace dlock::core {

namespace {

/// Empty counts as unset: that is how a shell switches a variable off for one command.
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read at open
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

Config config_from_environment() {
  const std::string_view file = variable("DLOCK_CONFIG");
  const std::string_view url = variable("DLOCK_STORE");
  if (!file.empty() && !url.empty()) {
    fail_config({}, {}, "both DLOCK_CONFIG and DLOCK_STORE are set; unset one of them");
  }
  if (!file.empty()) return Config::from_file(std::string(file));
  if (!url.empty()) return config_from_url(url, {"DLOCK_STORE"});
  fail_config({}, {},
              "no store is named; set DLOCK_STORE to a URL (file:///var/lib/app/locks) or "
              "DLOCK_CONFIG to a file");
}

}  // namespace dlock::core
