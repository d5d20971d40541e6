// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/resp.hpp"

#include <fmt/format.h>

namespace dlock::simulation::redis {

void append_reply(const Reply& reply, std::string& out) {
  switch (reply.kind) {
    case Reply::Kind::nil:
      out += "$-1\r\n";
      break;
    case Reply::Kind::status:
      out += fmt::format("+{}\r\n", reply.text);
      break;
    case Reply::Kind::error:
      out += fmt::format("-{}\r\n", reply.text);
      break;
    case Reply::Kind::integer:
      out += fmt::format(":{}\r\n", reply.integer);
      break;
    case Reply::Kind::text:
      out += fmt::format("${}\r\n{}\r\n", reply.text.size(), reply.text);
      break;
    case Reply::Kind::array:
      out += fmt::format("*{}\r\n", reply.items.size());
      for (const auto& item : reply.items) append_reply(item, out);
      break;
  }
}

std::string to_text(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::nil:
      return "nil";
    case Reply::Kind::status:
      return "+" + reply.text;
    case Reply::Kind::error:
      return "-" + reply.text;
    case Reply::Kind::integer:
      return std::to_string(reply.integer);
    case Reply::Kind::text:
      return fmt::format("'{}'", reply.text);
    case Reply::Kind::array:
      break;
  }
  std::string text = "[";
  for (const auto& item : reply.items) text += (text.size() > 1 ? ", " : "") + to_text(item);
  return text + "]";
}

}  // namespace dlock::simulation::redis
