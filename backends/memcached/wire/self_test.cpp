// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/self_test.hpp"

#include <utility>
#include <vector>

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/lease.hpp"

namespace dlock::memcached {
namespace {

using TestKind = SelfTestAnswer::Kind;

SelfTestAnswer answer_of(Answer answer) {
  switch (answer.outcome) {
    case Outcome::done:
      return {TestKind::yes};
    case Outcome::not_stored:
    case Outcome::not_found:
    case Outcome::exists:
      return {TestKind::no};
    case Outcome::refused: {
      const bool may_pass = answer.failure.error == make_error_code(Error::out_of_memory);
      return {may_pass ? TestKind::unanswered : TestKind::denied, std::move(answer.failure)};
    }
    case Outcome::unavailable:
    case Outcome::unknown:
      break;
  }
  return {TestKind::unanswered, std::move(answer.failure)};
}

SelfTestAnswer answer_of(Found found, const SelfTestOrder& order) {
  if (!found.answer.done()) return answer_of(std::move(found.answer));
  const auto* item = found.get(order.key);
  return {item != nullptr && item->value == order.value ? TestKind::yes : TestKind::no};
}

}  // namespace

SelfTestOrder self_test_order(std::string key, const std::string& id, std::uint64_t random) {
  // Servers count from 1.
  constexpr std::uint64_t kFar = std::uint64_t{1} << 62U;
  return {std::move(key), "dlock self-test 1 " + id, "dlock self-test 2 " + id,
          kFar | (random % kFar)};
}

asio::awaitable<SelfTest> send_self_test(Client& client, SelfTestOrder order, TimePoint deadline) {
  const auto era = client.era();
  const auto exptime = static_cast<std::time_t>(kSelfTestExpiry.count());
  const std::vector<std::string> keys{order.key};
  client.gather();
  auto acquiring = client.add(order.key, order.value, exptime, deadline);
  auto contending = client.add(order.key, order.other_value, exptime, deadline);
  auto replacing =
      client.cas(order.key, order.other_value, kPastExpiry, order.wrong_number, deadline);
  auto deleting = client.remove(order.key, order.wrong_number, deadline);
  auto reading = client.gets(keys, deadline);

  SelfTest test;
  auto acquired = co_await std::move(acquiring);
  const auto number = acquired.stored.cas;
  test.add(SelfTestStep::acquire, answer_of(std::move(acquired)));
  auto contended = co_await std::move(contending);
  test.add(SelfTestStep::acquire_as_another, answer_of(std::move(contended)));
  auto replaced = co_await std::move(replacing);
  test.add(SelfTestStep::release_as_another, answer_of(std::move(replaced)));
  auto deleted = co_await std::move(deleting);
  test.add(SelfTestStep::release_as_another, answer_of(std::move(deleted)));
  auto found = co_await std::move(reading);
  const auto* item = found.get(order.key);
  const auto read_number = item == nullptr ? 0 : item->number.cas;
  const bool is_there = item != nullptr;
  test.add(SelfTestStep::read_back, answer_of(std::move(found), order));

  // A key that is not removed expires.
  if (!is_there || client.era() != era) co_return test;
  auto removing = number != 0
                      ? client.remove(order.key, number, deadline)
                      : client.cas(order.key, order.value, kPastExpiry, read_number, deadline);
  auto removed = co_await std::move(removing);
  test.add(SelfTestStep::remove, answer_of(std::move(removed)));
  co_return test;
}

}  // namespace dlock::memcached
