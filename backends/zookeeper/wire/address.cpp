// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/address.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace dlock::zookeeper {

std::optional<boost::asio::ip::tcp::endpoint> endpoint_of(std::string_view address) {
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  boost::system::error_code ec;
  const auto ip = boost::asio::ip::make_address(std::string(address.substr(0, colon)), ec);
  std::uint16_t port = 0;
  std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  if (ec || port == 0) return std::nullopt;
  return boost::asio::ip::tcp::endpoint(ip, port);
}

std::string text_of(const boost::asio::ip::tcp::endpoint& endpoint) {
  return fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

}  // namespace dlock::zookeeper
