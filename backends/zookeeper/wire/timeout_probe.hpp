// SPDX-License-Identifier: Apache-2.0
//
// A second, short-lived session that feels the server's shortest timeout; see session_timeout.hpp.
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

/// Empty if no session came about by the deadline. `spent`: of the session that it is felt for, so
/// that both together try no server more often than one.
asio::awaitable<std::optional<AskedTimeout>> feel_timeout(Library& library, Env& env,
                                                          std::string addresses,
                                                          std::chrono::milliseconds timeout,
                                                          Redial::Spent spent, TimePoint deadline);

}  // namespace dlock::zookeeper
