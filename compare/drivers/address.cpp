// SPDX-License-Identifier: Apache-2.0
#include "compare/drivers/address.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace dlock::compare {

namespace {

std::uint16_t default_port(std::string_view scheme) {
  if (scheme == "redis") return 6379;
  if (scheme == "memcached") return 11211;
  return 2181;
}

}  // namespace

Address parse_address(std::string_view url) {
  const auto colon = url.find("://");
  if (colon == std::string_view::npos) {
    throw std::invalid_argument("not a store's URL: " + std::string(url));
  }
  Address result;
  result.scheme = url.substr(0, colon);
  if (result.scheme == "zk") result.scheme = "zookeeper";
  std::string_view rest = url.substr(colon + 3);
  rest = rest.substr(0, rest.find('?'));
  const auto slash = std::min(rest.find('/'), rest.size());
  result.path = rest.substr(slash);
  std::string_view hosts = rest.substr(0, slash);
  hosts = hosts.substr(std::min(hosts.find('@') + 1, hosts.size()));  // npos + 1 is 0
  result.hosts = hosts;
  std::string_view first = hosts.substr(0, hosts.find(','));
  const auto mark = first.rfind(':');
  result.host = first.substr(0, mark);
  result.port = default_port(result.scheme);
  if (mark != std::string_view::npos) {
    const auto digits = first.substr(mark + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), result.port);
  }
  return result;
}

}  // namespace dlock::compare
