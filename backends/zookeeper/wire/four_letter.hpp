// SPDX-License-Identifier: Apache-2.0
//
// What a server says of itself when asked with a four-letter word; `srvr` is allowed by default.
// Only for people: nothing depends on the answer.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "dlock/spi/env.hpp"

namespace dlock::zookeeper {

namespace asio = boost::asio;

/// `address` is numeric: `1.2.3.4:2181`. Empty if nothing came by the deadline.
asio::awaitable<std::string> ask_server(Env& env, std::string address, std::string word,
                                        TimePoint deadline);

}  // namespace dlock::zookeeper
