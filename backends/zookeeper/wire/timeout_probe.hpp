// SPDX-License-Identifier: Apache-2.0
//
// Finds the server's shortest timeout with a second, short-lived session; see session_timeout.hpp.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "backends/zookeeper/rules/session_timeout.hpp"
#include "backends/zookeeper/wire/library.hpp"
#include "backends/zookeeper/wire/redial.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::zookeeper {

namespace asio = boost::asio;

/// Empty if no session was made by the deadline. `spent`: from the session that it is probed for,
/// so that both together try no server more often than one.
asio::awaitable<std::optional<AskedTimeout>> feel_timeout(Library& library, Env& env,
                                                          std::string addresses,
                                                          std::chrono::milliseconds timeout,
                                                          Redial::Spent spent, TimePoint deadline);

}  // namespace dlock::zookeeper
