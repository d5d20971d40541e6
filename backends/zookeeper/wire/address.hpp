// SPDX-License-Identifier: Apache-2.0
//
// Numeric addresses as the C client writes them: `1.2.3.4:2181`, `::1:2181`. Pure.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::zookeeper {

/// Returns nullopt for what is not such an address.
std::optional<boost::asio::ip::tcp::endpoint> endpoint_of(std::string_view address);
std::string text_of(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace dlock::zookeeper
