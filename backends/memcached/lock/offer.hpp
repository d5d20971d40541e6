// SPDX-License-Identifier: Apache-2.0
//
// How a grant is exported: the proof is written into the lock's value, by cas. Against Commands.
#pragma once

#include <string>

#include "backends/memcached/rules/value.hpp"
#include "backends/memcached/wire/commands.hpp"

namespace dlock::memcached {

struct OfferOrder {
  std::string key;
  Value value;  ///< with the proof; its moments are filled in
};

/// Clear: done. not_holder: the key is not ours. Else nobody may count on it.
asio::awaitable<Failure> offer(Commands& server, OfferOrder order);

}  // namespace dlock::memcached
