// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/release.hpp"

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/value.hpp"

namespace dlock::memcached {

// EXISTS: an unanswered renewal was executed meanwhile; its value is also this claim's.
asio::awaitable<ReleaseResult> release(Commands& server, ReleaseOrder order) {
  constexpr int kTurns = 4;
  bool in_doubt = false;
  if (order.number.cas != 0) {
    auto answer = co_await server.remove(order.key, order.number);
    switch (answer.outcome) {
      case Outcome::done:
        co_return ReleaseResult{ReleaseStatus::released, {}};
      case Outcome::not_found:
        co_return ReleaseResult{ReleaseStatus::not_holder, {}};
      case Outcome::unknown:
        in_doubt = true;
        if (answer.failure.error == make_error_code(Error::no_answer)) {
          co_return ReleaseResult{ReleaseStatus::unknown, std::move(answer.failure)};
        }
        break;
      case Outcome::unavailable:
        co_return ReleaseResult{ReleaseStatus::unavailable, std::move(answer.failure)};
      default:
        break;
    }
  }
  const std::vector<std::string> keys{order.key};
  for (int turn = 0; turn < kTurns; ++turn) {
    auto found = co_await server.gets(keys);
    if (!found.answer.done()) {
      const bool refused = found.answer.outcome == Outcome::refused;
      const auto status = in_doubt || refused ? ReleaseStatus::unknown : ReleaseStatus::unavailable;
      co_return ReleaseResult{status, std::move(found.answer.failure)};
    }
    const auto* item = found.get(order.key);
    const bool is_ours = item != nullptr && (belongs_to(item->value, order.owner_id) ||
                                             mark_of(item->value, order.owner_id));
    if (!is_ours) {
      co_return ReleaseResult{in_doubt ? ReleaseStatus::released : ReleaseStatus::not_holder, {}};
    }
    auto answer = co_await server.cas(order.key, item->value, kPastExpiry, item->number);
    switch (answer.outcome) {
      case Outcome::done:
        co_return ReleaseResult{ReleaseStatus::released, {}};
      case Outcome::exists:
      case Outcome::not_found:
        break;
      case Outcome::unknown:
        in_doubt = true;
        if (answer.failure.error == make_error_code(Error::no_answer)) {
          co_return ReleaseResult{ReleaseStatus::unknown, std::move(answer.failure)};
        }
        break;
      default:
        co_return ReleaseResult{ReleaseStatus::unavailable, std::move(answer.failure)};
    }
  }
  co_return ReleaseResult{ReleaseStatus::unknown,
                          failure(Error::unexpected, "the key changes all the time")};
}

}  // namespace dlock::memcached
