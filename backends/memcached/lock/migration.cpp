// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/lock/migration.hpp"

#include "backends/memcached/error.hpp"
#include "backends/memcached/lock/look.hpp"
#include "backends/memcached/rules/lease.hpp"
#include "backends/memcached/rules/token.hpp"
#include "backends/memcached/rules/value.hpp"

namespace dlock::memcached {
namespace {

constexpr int kTurns = 8;
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
  return {Outcome::unavailable, failure(Error::unexpected, "the key changes all the time")};
}

}  // namespace

Answer lift_counter(Commands& server, const std::string& token_key, std::uint64_t above) {
  for (int turn = 0; turn < kTurns; ++turn) {
    auto found = server.gets({token_key});
    if (!found.answer.done()) return std::move(found.answer);
    const auto* item = found.get(token_key);
    const auto counter = read_counter(item);
    if (item != nullptr && !counter) {
      return {Outcome::refused, failure(Error::token_broken, token_key)};
    }
    const auto clock = server.wall_clock_us();
    const auto value = std::max(above, counter.value_or(token_seed(clock, above)));
    const auto exptime = token_exptime(value, clock);
    if (counter && *counter >= above && exptime != kNever) return std::move(found.answer);
    auto put = item == nullptr ? server.add(token_key, std::to_string(value), exptime)
                               : server.cas(token_key, std::to_string(value), exptime, item->cas);
    if (!changed_meanwhile(put)) return put;
  }
  return changes_all_the_time();
}

RecordAnswer raise(Commands& server, const ReleaseOrder& holder, const std::string& token_key,
                   std::uint64_t min_token) {
  if (min_token >= kTokenEnd - 1) {
    return not_done({Outcome::refused, failure(Error::token_broken, token_key)});
  }
  auto found = server.gets({holder.key});
  if (!found.answer.done()) return not_read(std::move(found.answer));
  const auto* item = found.get(holder.key);
  if (item == nullptr || !belongs_to(item->value, holder.owner_id)) {
    return answer_of(RecordStatus::conflict);
  }
  auto lifted = lift_counter(server, token_key, min_token);
  if (lifted.done()) return answer_of(RecordStatus::done);
  return not_done(std::move(lifted));
}

RecordAnswer read_note(Commands& server, const std::string& key) {
  auto found = server.gets({key});
  if (!found.answer.done()) return not_read(std::move(found.answer));
  const auto* item = found.get(key);
  return answer_of(RecordStatus::done, item == nullptr ? std::string() : item->value);
}

RecordAnswer write_note(Commands& server, const std::string& key, const std::string& from,
                        const std::string& to) {
  for (int turn = 0; turn < kTurns; ++turn) {
    auto found = server.gets({key});
    if (!found.answer.done()) return not_read(std::move(found.answer));
    const auto* item = found.get(key);
    const auto there = item == nullptr ? std::string() : item->value;
    if (there != from) return answer_of(RecordStatus::conflict, there);
    if (item == nullptr && to.empty()) return answer_of(RecordStatus::done);
    auto put = item == nullptr ? server.add(key, to, kNever)
               : to.empty()    ? server.cas(key, there, kPastExpiry, item->cas)
                               : server.cas(key, to, kNever, item->cas);
    if (put.done()) return answer_of(RecordStatus::done);
    if (!changed_meanwhile(put)) return not_done(std::move(put));
  }
  return not_done(changes_all_the_time());
}

}  // namespace dlock::memcached
