// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/offer.hpp"

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::memcached {

// EXISTS: a renewal of ours that was not answered has come in between; or somebody else.
Failure offer(Commands& server, const OfferOrder& order) {
  constexpr int kTurns = 4;
  for (int turn = 0; turn < kTurns; ++turn) {
    auto found = server.gets({order.key});
    if (!found.answer.done()) return std::move(found.answer.failure);
    const auto* item = found.get(order.key);
    if (item == nullptr || !belongs_to(item->value, order.value.owner.id)) {
      return make_failure(errc::not_holder, "the server does not know the grant any more");
    }
    auto value = order.value;
    value.renewed_ms = server.wall_clock_us() / 1000;
    auto answer = server.cas(order.key, write_value(value), exptime_of(value.lease), item->cas);
    if (answer.done()) return {};
    const bool has_changed =
        answer.outcome == Outcome::exists || answer.outcome == Outcome::not_found;
    if (!has_changed) return std::move(answer.failure);
  }
  return failure(Error::unexpected, "the key changes all the time");
}

}  // namespace dlock::memcached
