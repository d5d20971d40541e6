// SPDX-License-Identifier: Apache-2.0
//
// Acquires a lock: `add`, then a token. Uses Commands.
//
//   server not tested          -> self-test first: passed or denied, continue; wrong, `failed`
//   add STORED                 -> token, granted            2 round trips, 3 for a new counter
//   add NOT_STORED             -> busy
//   an earlier add in doubt    -> read first: own value, renew it by cas; absent, add; else busy
//   an exported grant          -> read first: that very grant, cas; adopted already, renew it by
//   cas
//   add not answered           -> in doubt; once more if the connection broke, else `unknown`
//   add answered too slowly    -> as if in doubt, see lease.hpp
//
// The token is requested after the lock is won. If it were requested before, it could be smaller
// than an earlier holder's. It counts only if it arrived before the lease's end: the core checks
// that by `sent`.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/memcached/rules/value.hpp"
#include "backends/memcached/wire/commands.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::memcached {

struct AcquireOrder {
  std::string key;
  std::string token_key;
  Value value;  ///< moments are filled in
  std::uint64_t min_token = 0;
  bool in_doubt = false;  ///< an add of this claim may have been executed, or may be yet
  /// Not null: replaces the value of this grant by cas, instead of an add.
  std::shared_ptr<const Adoption> adoption;
};

struct AcquireResult {
  ClaimStatus status = ClaimStatus::unknown;
  std::optional<std::uint64_t> token;
  TimePoint sent{};           ///< the lease counts from here
  std::int64_t since_ms = 0;  ///< as in the value
  ServerInfo info;            ///< the server's facts while the lock was there
  ItemNumber number;          ///< number of the stored value
  bool late_add = false;      ///< an add was not answered: a copy may arrive later
  Failure failure;
};

asio::awaitable<AcquireResult> acquire(Commands& server, AcquireOrder order);

}  // namespace dlock::memcached
