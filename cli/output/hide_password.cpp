// SPDX-License-Identifier: Apache-2.0
#include "cli/output/hide_password.hpp"

#include <algorithm>
#include <string_view>

namespace dlock::cli {

bool hide_passwords(int argc, char** argv) noexcept {
  bool found = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word == "--") break;  // what follows is the command's own
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
  return found;
}

}  // namespace dlock::cli
