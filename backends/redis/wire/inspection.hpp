// SPDX-License-Identifier: Apache-2.0
//
// The requests to a server right after login, in one write: its identity and settings, this
// connection's client id, and whether scripts are allowed. It also loads the scripts, so that the
// first acquire costs one round trip.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backends/redis/rules/info.hpp"
#include "backends/redis/wire/connection.hpp"

namespace dlock::redis {

struct Inspected {
  ServerFacts facts;
  std::optional<std::int64_t> client_id;  ///< empty: not reported
  Failure failure;                        ///< why this server cannot be used
  bool permanent = false;
};

asio::awaitable<Inspected> inspect_server(Env& env, std::shared_ptr<Connection> connection,
                                          TimePoint deadline);

/// Kills old connections of this process, so that no request on them is executed later. May be
/// called only for the same run of the server: another run assigns the ids to other clients.
/// Returns false if it is not allowed.
asio::awaitable<bool> kill_clients(std::shared_ptr<Connection> connection,
                                   std::vector<std::int64_t> ids, TimePoint deadline);

}  // namespace dlock::redis
