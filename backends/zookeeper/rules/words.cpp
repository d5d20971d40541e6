// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/words.hpp"

namespace dlock::zookeeper {

std::string line_value(const std::string& text, const std::string& key) {
  const auto at = text.find(key + ": ");
  if (at == std::string::npos) return {};
  const auto from = at + key.size() + 2;
  const auto end = text.find_first_of(",\r\n", from);
  return text.substr(from, end == std::string::npos ? end : end - from);
}

}  // namespace dlock::zookeeper
