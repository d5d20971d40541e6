// SPDX-License-Identifier: Apache-2.0
//
// The steps of the self-test (dlock/spi/self_test/steps.hpp) as commands on one connection. Locks
// are acquired, renewed and released by the same commands. Two round trips: all steps up to the
// read, then the removal.
#pragma once

#include <string>

#include "backends/memcached/wire/client.hpp"
#include "dlock/spi/self_test/steps.hpp"

namespace dlock::memcached {

struct SelfTestOrder {
  std::string key;                 ///< Differs from the key of every lock.
  std::string value;               ///< The first owner's.
  std::string other_value;         ///< The other owner's.
  std::uint64_t wrong_number = 0;  ///< Differs from the number of every item.
};

/// `id`: a random id, which makes the values differ from those of other runs.
SelfTestOrder self_test_order(std::string key, const std::string& id, std::uint64_t random);

/// Lifetime: `client` outlives the call. A connection that replaces the present one is not tested.
asio::awaitable<SelfTest> send_self_test(Client& client, SelfTestOrder order, TimePoint deadline);

}  // namespace dlock::memcached
