// SPDX-License-Identifier: Apache-2.0
//
// Filters of a FaultProxy before a Memcached server: the proxy ignores conditions of commands, as
// proxies do that know only `set`, `get` and `delete`. A request must arrive in one segment.
#pragma once

#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "testkit/fault_proxy.hpp"

namespace dlock::testkit {

enum class Ignored { nothing, add, compare };
enum class Dialect { meta, classic };

inline std::string replaced(const std::string& text, const char* pattern, const char* by) {
  return std::regex_replace(text, std::regex(pattern), by);
}

/// With `classic` the server appears not to know meta commands.
inline Filter careless(Ignored ignored, Dialect dialect = Dialect::meta) {
  return [=](Direction direction, ConnectionId, std::string_view bytes) {
    std::string text(bytes);
    if (direction == Direction::to_server) {
      if (dialect == Dialect::classic) text = replaced(text, "(^|\n)mn\r\n", "$1??\r\n");
      if (ignored == Ignored::add) {
        text = replaced(text, " ME\r\n", " MS\r\n");
        text = replaced(text, "(^|\n)add ", "$1set ");
      }
      if (ignored == Ignored::compare) {
        text = replaced(text, "(^|\n)(m[sd] [^\r\n]*) C[0-9]+", "$1$2");
        text = replaced(text, "(^|\n)cas ([^\r\n]*) [0-9]+\r\n", "$1set $2\r\n");
      }
    }
    return std::vector<Piece>{{std::move(text), Verdict::forward}};
  };
}

}  // namespace dlock::testkit
