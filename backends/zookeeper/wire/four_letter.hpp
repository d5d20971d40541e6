// SPDX-License-Identifier: Apache-2.0
//
// Asks a server for its status with a four-letter command; `srvr` is allowed by default. The reply
// is only for people: nothing depends on it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "dlock/spi/env.hpp"

namespace dlock::zookeeper {

namespace asio = boost::asio;

/// `address` is numeric: `1.2.3.4:2181`. Empty if no reply arrived by the deadline.
asio::awaitable<std::string> ask_server(Env& env, std::string address, std::string word,
                                        TimePoint deadline);

}  // namespace dlock::zookeeper
