// SPDX-License-Identifier: Apache-2.0
#include "core/config/fail.hpp"

#include <fmt/format.h>

#include "dlock/error.hpp"

namespace dlock::inline v0 {

std::string Origin::text() const {
  if (line == 0) return file;
  if (column == 0) return fmt::format("{}:{}", file, line);
  return fmt::format("{}:{}:{}", file, line, column);
}

}  // namespace dlock::inline v0

namespace dlock::core {

std::string config_message(const Origin& origin, const std::string& store,
                           const std::string& text) {
  std::string message = origin.text();
  if (!message.empty()) message += ": ";
  if (!store.empty()) message += fmt::format("store '{}': ", store);
  return message + text;
}

void fail_config(const Origin& origin, const std::string& store, const std::string& text) {
  Diagnostics diagnostics;
  diagnostics.server_text = config_message(origin, store, text);
  throw LockError(make_error_code(errc::config_invalid), std::move(diagnostics));
}

}  // namespace dlock::core
