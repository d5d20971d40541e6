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

/// Makes one attempt at `server`. Returns nothing if it made no session by the deadline. `spent` is
/// shared with the session whose timeout is checked: both together try the server no more often
/// than one session does.
asio::awaitable<std::optional<AskedTimeout>> feel_timeout(Library& library, Env& env,
                                                          std::string server,
                                                          std::chrono::milliseconds timeout,
                                                          Redial::Spent spent, TimePoint deadline);

}  // namespace dlock::zookeeper
