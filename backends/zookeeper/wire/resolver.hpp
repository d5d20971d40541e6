// SPDX-License-Identifier: Apache-2.0
//
// Host names to the numeric list that libzookeeper gets. Left to the library, each step would
// resolve them again and block the loop.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "dlock/spi/env.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::zookeeper {

namespace asio = boost::asio;

struct Resolved {
  /// `1.2.3.4:2181,::1:2181`, in the order of the endpoints; names that cannot be resolved by the
  /// deadline are left out.
  std::string addresses;
  /// Names were left out because the system had no thread to look them up on.
  bool no_thread = false;
};
asio::awaitable<Resolved> resolve(Env& env, std::vector<Endpoint> endpoints, TimePoint deadline);

/// True if no name has to be looked up.
bool all_numeric(const std::vector<Endpoint>& endpoints);

}  // namespace dlock::zookeeper
