// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/offer.hpp"

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::memcached {

// EXISTS: an unanswered renewal of this claim, or another client, has changed the value meanwhile.
asio::awaitable<Failure> offer(Commands& server, OfferOrder order) {
  constexpr int kTurns = 4;
  const std::vector<std::string> keys{order.key};
  for (int turn = 0; turn < kTurns; ++turn) {
    auto found = co_await server.gets(keys);
    if (!found.answer.done()) co_return std::move(found.answer.failure);
    const auto* item = found.get(order.key);
    if (item == nullptr || !belongs_to(item->value, order.value.owner.id)) {
      co_return make_failure(errc::not_holder, "the server does not know the grant any more");
    }
    auto value = order.value;
    value.renewed_ms = server.wall_clock_us() / 1000;
    const auto text = write_value(value);
    auto answer = co_await server.cas(order.key, text, exptime_of(value.lease), item->number);
    if (answer.done()) co_return Failure{};
    const bool has_changed =
        answer.outcome == Outcome::exists || answer.outcome == Outcome::not_found;
    if (!has_changed) co_return std::move(answer.failure);
  }
  co_return failure(Error::unexpected, "the key changes all the time");
}

}  // namespace dlock::memcached
