// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/migration.hpp"

#include "backends/memcached/error.hpp"
#include "backends/memcached/lock/look.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/token.hpp"
#include "backends/memcached/rules/value.hpp"

namespace dlock::memcached {
namespace {

constexpr int kMostTurns = 8;
constexpr std::time_t kNever = 0;

bool changed_meanwhile(const Answer& answer) {
  return answer.outcome == Outcome::not_stored || answer.outcome == Outcome::not_found ||
         answer.outcome == Outcome::exists;
}

RecordAnswer answer_of(RecordStatus status, std::string found = {}) {
  RecordAnswer answer;
  answer.status = status;
  if (!found.empty()) answer.found = std::move(found);
  return answer;
}

RecordAnswer not_done(Answer answer) {
  RecordAnswer result;
  result.status = answer.outcome == Outcome::unknown   ? RecordStatus::unknown
                  : answer.outcome == Outcome::refused ? RecordStatus::failed
                                                       : RecordStatus::unavailable;
  result.failure = std::move(answer.failure);
  return result;
}

/// A read that was not answered has changed nothing.
RecordAnswer not_read(Answer answer) {
  if (answer.outcome == Outcome::unknown) answer.outcome = Outcome::unavailable;
  return not_done(std::move(answer));
}

Answer changes_all_the_time() {
  return {Outcome::unavailable, failure(Error::unexpected, "the key changes all the time"), {}};
}

}  // namespace

asio::awaitable<Answer> lift_counter(Commands& server, std::string token_key, std::uint64_t above) {
  const std::vector<std::string> keys{token_key};
  for (int turn = 0; turn < kMostTurns; ++turn) {
    auto found = co_await server.gets(keys);
    if (!found.answer.done()) co_return std::move(found.answer);
    const auto* item = found.get(token_key);
    const auto counter = counter_of(item);
    if (item != nullptr && !counter) {
      co_return Answer{Outcome::refused, broken_counter(token_key, item), {}};
    }
    const auto clock = server.wall_clock_us();
    const auto value = std::max(above, counter.value_or(token_seed(clock, above)));
    const auto exptime = token_exptime(value, clock);
    if (counter && *counter >= above && exptime != kNever) co_return std::move(found.answer);
    const auto text = std::to_string(value);
    auto putting = item == nullptr ? server.add(token_key, text, exptime)
                                   : server.cas(token_key, text, exptime, item->number);
    auto put = co_await std::move(putting);
    if (!changed_meanwhile(put)) co_return put;
  }
  co_return changes_all_the_time();
}

asio::awaitable<RecordAnswer> raise(Commands& server, ReleaseOrder holder, std::string token_key,
                                    std::uint64_t min_token) {
  if (min_token >= kTokenEnd - 1) {
    co_return not_done({Outcome::refused, failure(Error::token_broken, token_key), {}});
  }
  const std::vector<std::string> keys{holder.key};
  auto found = co_await server.gets(keys);
  if (!found.answer.done()) co_return not_read(std::move(found.answer));
  const auto* item = found.get(holder.key);
  if (item == nullptr || !belongs_to(item->value, holder.owner_id)) {
    co_return answer_of(RecordStatus::conflict);
  }
  auto lifted = co_await lift_counter(server, token_key, min_token);
  if (lifted.done()) co_return answer_of(RecordStatus::done);
  co_return not_done(std::move(lifted));
}

asio::awaitable<RecordAnswer> read_note(Commands& server, std::string key) {
  const std::vector<std::string> keys{key};
  auto found = co_await server.gets(keys);
  if (!found.answer.done()) co_return not_read(std::move(found.answer));
  const auto* item = found.get(key);
  co_return answer_of(RecordStatus::done, item == nullptr ? std::string() : item->value);
}

asio::awaitable<RecordAnswer> write_note(Commands& server, std::string key, std::string from,
                                         std::string to) {
  const std::vector<std::string> keys{key};
  for (int turn = 0; turn < kMostTurns; ++turn) {
    auto found = co_await server.gets(keys);
    if (!found.answer.done()) co_return not_read(std::move(found.answer));
    const auto* item = found.get(key);
    const auto there = item == nullptr ? std::string() : item->value;
    if (there != from) co_return answer_of(RecordStatus::conflict, there);
    if (item == nullptr && to.empty()) co_return answer_of(RecordStatus::done);
    auto putting = item == nullptr ? server.add(key, to, kNever)
                   : to.empty()    ? server.cas(key, there, kPastExpiry, item->number)
                                   : server.cas(key, to, kNever, item->number);
    auto put = co_await std::move(putting);
    if (put.done()) co_return answer_of(RecordStatus::done);
    if (!changed_meanwhile(put)) co_return not_done(std::move(put));
  }
  co_return not_done(changes_all_the_time());
}

}  // namespace dlock::memcached
