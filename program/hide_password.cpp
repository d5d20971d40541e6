// SPDX-License-Identifier: Apache-2.0
#include "program/hide_password.hpp"

#include <algorithm>
#include <string_view>

#include "program/output.hpp"

namespace dlock::program {

void hide_passwords(int argc, char** argv) noexcept {
  bool found = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word == "--") break;  // the words behind it are the command's
    const bool attached = word.starts_with("--store=");
    if (!attached && (i < 2 || std::string_view(argv[i - 1]) != "--store")) continue;
    const auto scheme = word.find("://");
    const auto at = word.rfind('@');
    if (scheme == word.npos || at == word.npos || at < scheme) continue;
    const auto colon = word.find(':', scheme + 3);
    if (colon == word.npos || colon > at) continue;
    std::fill(argv[i] + colon + 1, argv[i] + at, '*');
    found = true;
  }
  if (!found) return;
  warn(
      "a password on the command line: others on this machine may have seen it; write "
      "the URL into DLOCK_STORE, or use --config with password_env or password_file");
}

}  // namespace dlock::program
