// SPDX-License-Identifier: Apache-2.0
//
// Exports a grant: writes the proof into the lock's value, by cas. Uses Commands.
#pragma once

#include <string>

#include "backends/memcached/rules/value.hpp"
#include "backends/memcached/wire/commands.hpp"

namespace dlock::memcached {

struct OfferOrder {
  std::string key;
  Value value;  ///< with the proof; its moments are filled in
};

/// Clear: done. not_holder: the key is another owner's. Otherwise the proof may not be relied on.
asio::awaitable<Failure> offer(Commands& server, OfferOrder order);

}  // namespace dlock::memcached
