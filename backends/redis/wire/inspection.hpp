// SPDX-License-Identifier: Apache-2.0
//
// What is asked of a server at once after login, in one write: who it is and how it is set up, who
// we are to it, whether we may run scripts; and the scripts themselves, so that the first acquire
// costs one round trip.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backends/redis/rules/info.hpp"
#include "backends/redis/wire/connection.hpp"

namespace dlock::redis {

struct Inspected {
  ServerFacts facts;
  std::optional<std::int64_t> client_id;  ///< empty: not told
  Failure failure;                        ///< why this server cannot serve us
  bool permanent = false;
};

asio::awaitable<Inspected> inspect_server(Env& env, std::shared_ptr<Connection> connection,
                                          TimePoint deadline);

/// Ends what is left of connections of ours, so that nothing sent on them is done any more. Only
/// on the same run of the server: another gives the numbers to others. False: not allowed.
asio::awaitable<bool> kill_clients(std::shared_ptr<Connection> connection,
                                   std::vector<std::int64_t> ids, TimePoint deadline);

}  // namespace dlock::redis
