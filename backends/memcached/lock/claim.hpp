// SPDX-License-Identifier: Apache-2.0
//
// The state of one claim. Loop only.
#pragma once

#include <memory>
#include <string>

#include "backends/memcached/rules/server_info.hpp"
#include "backends/memcached/rules/value.hpp"
#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::memcached {

class Server;

class KeyClaim final : public Claim {
 public:
  KeyClaim(ClaimRequest request, Env& env, std::shared_ptr<Server> where)
      : Claim(std::move(request)), server(std::move(where)), wake(env) {}

  const std::shared_ptr<Server> server;  ///< permanent: a name never moves
  std::string key;
  std::string token_key;

  Signal wake;
  std::uint64_t arrival = 0;  ///< its place among the waiters here; 0: never waited
  bool woken = false;         ///< notified to try, and has not tried yet

  bool in_doubt = false;          ///< the claim's own value may be in the store
  bool granted = false;           ///< reported to the core as granted
  bool release_in_doubt = false;  ///< a release was sent and not answered
  TimePoint late_until{};         ///< until then an add of unknown outcome may still arrive
  std::int64_t since_ms = 0;
  ServerInfo info;
  ItemNumber stored;  ///< number of the last value stored for it, if known
  std::string proof;  ///< set when its grant was exported: renewals keep it in the value

  /// The value to write.
  Value value() const {
    Value value;
    value.owner = request().owner;
    value.name = request().name;
    value.lease = request().lease;
    value.since_ms = since_ms;
    value.proof = proof;
    return value;
  }
};
using KeyClaimPtr = std::shared_ptr<KeyClaim>;

}  // namespace dlock::memcached
