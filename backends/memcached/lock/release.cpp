// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/release.hpp"

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/value.hpp"

namespace dlock::memcached {

// EXISTS: a renewal that was not answered has come in between; its value is ours, too.
ReleaseResult release(Commands& server, const ReleaseOrder& order) {
  constexpr int kTurns = 4;
  bool in_doubt = false;
  for (int turn = 0; turn < kTurns; ++turn) {
    auto found = server.gets({order.key});
    if (!found.answer.done()) {
      const bool refused = found.answer.outcome == Outcome::refused;
      return {in_doubt || refused ? ReleaseStatus::unknown : ReleaseStatus::unavailable,
              std::move(found.answer.failure)};
    }
    const auto* item = found.get(order.key);
    if (item == nullptr || !belongs_to(item->value, order.owner_id)) {
      return {in_doubt ? ReleaseStatus::released : ReleaseStatus::not_holder, {}};
    }
    auto answer = server.cas(order.key, item->value, kPastExpiry, item->cas);
    switch (answer.outcome) {
      case Outcome::done:
        return {ReleaseStatus::released, {}};
      case Outcome::exists:
      case Outcome::not_found:
        break;
      case Outcome::unknown:
        in_doubt = true;
        if (answer.failure.error == make_error_code(Error::no_answer)) {
          return {ReleaseStatus::unknown, std::move(answer.failure)};
        }
        break;
      default:
        return {ReleaseStatus::unavailable, std::move(answer.failure)};
    }
  }
  return {ReleaseStatus::unknown, failure(Error::unexpected, "the key changes all the time")};
}

}  // namespace dlock::memcached
