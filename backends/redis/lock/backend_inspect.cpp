// SPDX-License-Identifier: Apache-2.0
//
// The holder and the waiters of a lock, all locks of a prefix, and an operator's break.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "backends/redis/backend.hpp"
#include "backends/redis/rules/readers.hpp"
#include "backends/redis/rules/value.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::redis {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A longer queue is counted, not named.
constexpr std::int64_t kMostWaiters = 1000;
constexpr std::string_view kScanCount = "1000";

ScriptCall inspect_call(const KeyBase& keys) {
  ScriptCall call;
  call.keys = {keys.lock(), Word(keys.text, kQueueKey), Word(keys.text, kAliveKey)};
  call.arguments = {Word(kMostWaiters)};
  return call;
}

Command scan_command(const std::string& cursor, std::string pattern) {
  Command command;
  command.emplace_back("SCAN");
  command.push_back(cursor);
  command.emplace_back("MATCH");
  command.push_back(std::move(pattern));
  command.emplace_back("COUNT");
  command.emplace_back(kScanCount);
  return command;
}

std::int64_t to_number(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void note_foreign(const std::string& type, LockStatus& status) {
  status.held = true;
  status.owner.emplace();
  status.notes.push_back(
      type == "hash" ? std::string("the key is a hash: a Redisson lock? dlock and Redisson do not "
                                   "share locks; use another key for one of them")
                     : fmt::format("the key is a {}: another program's data", type));
}

void add_holder(const std::string& text, std::int64_t now_us, LockStatus& status) {
  if (text.starts_with(kRecordPrefix)) {
    status.sealed = true;
    status.notes.emplace_back("sealed by a migration: no client can acquire it here");
    return;
  }
  const auto value = read_value(text);
  status.held = true;
  status.token = value.token;
  status.owner = value.owner;
  status.broken = value.broken;
  if (!value.token) {
    status.notes.emplace_back("held by a client of another make: no token, no owner's data");
    return;
  }
  // The token is the server's clock at the grant, unless it had to be pushed up.
  const auto age = std::max<std::int64_t>(now_us, 0) - static_cast<std::int64_t>(*value.token);
  if (age >= 0) status.held_for = std::chrono::duration_cast<milliseconds>(microseconds(age));
}

/// Returns whether a list leaves that lock out.
bool concerns_one_lock(const Failure& failure) {
  const auto error = portable(failure.error);
  return error == errc::access_denied || error == errc::newer_format;
}

Failure newer_readers(std::string_view key, const Replies& items) {
  if (items.size() < 2) return {};
  auto text = newer_format(key, items[1].text, kReadersStamp, kFormat);
  if (text.empty()) return {};
  return {Error::newer_format, std::move(text)};
}

/// Adds the rest of the lease. The lock delay follows it, but only for locks of dlock.
void add_remaining(milliseconds left, milliseconds lock_delay, LockStatus& status) {
  if (!status.token) lock_delay = milliseconds(0);
  status.remaining = std::max(left - lock_delay, milliseconds(0));
  if (left <= lock_delay) {
    status.notes.push_back(fmt::format(
        "its holder has lost it; no client is granted it for another {} ms (lock_delay)",
        left.count()));
  }
}

/// Empty if the answer is none of our script's.
std::optional<LockStatus> read_status(std::string name, const Replies& items,
                                      milliseconds lock_delay) {
  if (items.size() != 6) return {};
  LockStatus status;
  status.name = std::move(name);
  const auto& type = items[0].text;
  if (type == "string") {
    const auto now_us = to_number(items[3].text);
    const auto readers = read_readers(items[1].text);
    if (readers) add_readers(*readers, now_us, lock_delay, status);
    if (!readers) add_holder(items[1].text, now_us, status);
  } else if (type != "none") {
    note_foreign(type, status);
  }
  if (status.held && status.readers.empty() && items[2].integer >= 0) {
    add_remaining(read_remaining(items[2].integer), lock_delay, status);
  }
  if (status.held && items[2].integer == -1) {
    status.notes.emplace_back("the key never expires: a dead holder keeps it for ever");
  }
  for (const auto& waiter : items[5].items) status.waiting.push_back(read_waiter(waiter.text));
  if (items[4].integer > kMostWaiters) {
    status.notes.push_back(
        fmt::format("{} wait, the first {} are named", items[4].integer, kMostWaiters));
  }
  return status;
}

}  // namespace

asio::awaitable<Failure> RedisBackend::describe(std::vector<std::string> names,
                                                std::shared_ptr<std::vector<LockStatus>> into,
                                                TimePoint deadline) {
  Failure denied;  // about the first lock that cannot be read
  for (std::size_t at = 0; at < names.size(); at += kNamesAtOnce) {
    const bool ready = co_await link_->ready(deadline);
    if (!ready) co_return link_->failure();
    std::vector<KeyBase> keys;
    std::vector<ScriptCall> calls;
    const auto end = std::min(names.size(), at + kNamesAtOnce);
    for (auto i = at; i < end; ++i) keys.push_back(names_.base(names[i]));
    for (const auto& one : keys) calls.push_back(inspect_call(one));
    const auto connection = link_->connection();
    const auto answers =
        co_await run_scripts(env_, connection, scripts().inspect, std::move(calls), deadline);
    for (auto i = at; i < end; ++i) {
      const auto& answer = answers[i - at];
      const bool is_reply = answer.kind == ScriptAnswer::Kind::reply;
      const auto failure =
          is_reply ? newer_readers(keys[i - at].lock(), answer.items) : answer.failure;
      if (!is_reply || failure.error) {
        if (!concerns_one_lock(failure)) co_return failure;
        if (!denied.error) {
          denied = failure;
          denied.text = fmt::format("{}: {}", names[i], failure.text);
        }
        continue;
      }
      auto status = read_status(names[i], answer.items, lock_delay_);
      if (!status) co_return Failure{Error::unexpected, "an answer of another form"};
      into->push_back(std::move(*status));
    }
  }
  co_return denied;
}

asio::awaitable<Result<LockStatus>> RedisBackend::inspect(std::string name, TimePoint deadline) {
  auto found = std::make_shared<std::vector<LockStatus>>();
  std::vector<std::string> names;
  names.push_back(std::move(name));
  Result<LockStatus> result;
  result.failure = co_await describe(std::move(names), found, deadline);
  if (!result.failure.error) result.value = std::move(found->front());
  co_return result;
}

// SCAN returns every key that exists during the whole scan at least once.
asio::awaitable<Result<std::vector<std::string>>> RedisBackend::scan_keys(std::string pattern,
                                                                          TimePoint deadline) {
  Result<std::vector<std::string>> result;
  std::set<std::string> keys;
  std::string cursor = "0";
  do {
    const bool ready = co_await link_->ready(deadline);
    if (!ready) {
      result.failure = link_->failure();
      co_return result;
    }
    auto pending = link_->connection()->send(scan_command(cursor, pattern));
    const auto outcome = co_await pending.get_until(deadline);
    if (!outcome || outcome->kind != Outcome::Kind::reply) {
      result.failure = {Error::no_answer, settings_->address()};
      co_return result;
    }
    const auto& reply = outcome->reply;
    if (reply.is_error() || reply.items.size() != 2) {
      result.failure = {reply.is_error() ? judge(reply.text).error : Error::unexpected, reply.text};
      co_return result;
    }
    cursor = reply.items[0].text;
    for (const auto& key : reply.items[1].items) keys.insert(key.text);
  } while (cursor != "0");
  result.value.emplace(keys.begin(), keys.end());
  co_return result;
}

/// Returns the names of the locks that have a key, or with a `suffix` that key beside it.
asio::awaitable<Result<std::vector<std::string>>> RedisBackend::scan(std::string prefix,
                                                                     std::string suffix,
                                                                     TimePoint deadline) {
  auto pattern = suffix.empty() ? names_.pattern(prefix) : names_.pattern_beside(prefix, suffix);
  auto result = co_await scan_keys(std::move(pattern), deadline);
  if (!result.value) co_return result;
  std::set<std::string> names;
  for (const auto& key : *result.value) {
    const auto name = suffix.empty() ? names_.name(key) : names_.name_beside(key, suffix);
    if (!name) continue;
    const bool below = prefix.empty() || *name == prefix || name->starts_with(prefix + "/");
    if (below) names.insert(*name);
  }
  result.value.emplace(names.begin(), names.end());
  co_return result;
}

asio::awaitable<Result<std::vector<LockStatus>>> RedisBackend::list(std::string prefix,
                                                                    TimePoint deadline) {
  Result<std::vector<LockStatus>> result;
  auto names = co_await scan(std::move(prefix), {}, deadline);
  result.failure = std::move(names.failure);
  if (!names.value) co_return result;
  auto found = std::make_shared<std::vector<LockStatus>>();
  result.failure = co_await describe(std::move(*names.value), found, deadline);
  const bool is_complete = !result.failure.error;
  if (!is_complete && !concerns_one_lock(result.failure)) co_return result;
  // A lock that ended during the scan is not listed.
  std::erase_if(*found, [](const LockStatus& status) { return !status.held && !status.sealed; });
  result.value = std::move(*found);
  co_return result;
}

asio::awaitable<EvictAnswer> RedisBackend::evict(EvictRequest request, TimePoint deadline) {
  EvictAnswer result;
  const bool ready = co_await link_->ready(deadline);
  if (!ready) {
    result.failure = link_->failure();
    co_return result;
  }
  const auto keys = names_.keys(request.name);
  const auto mark = write_break(request.mark);
  ScriptCall call;
  call.keys = {keys.lock, keys.queue, keys.alive, keys.next, keys.broken, keys.fence};
  call.arguments = {Word(request.token), waking_, mark, request.at_once ? "1" : "0"};
  const auto connection = link_->connection();
  const auto answer = co_await run_script(env_, connection, scripts().evict, call, deadline);
  co_return take_evicted(request.name, answer);
}

EvictAnswer RedisBackend::take_evicted(const std::string& name, const ScriptAnswer& answer) {
  EvictAnswer result;
  if (answer.kind != ScriptAnswer::Kind::reply) {
    result.failure = answer.failure;
    return result;
  }
  const auto held = [&] {
    return read_value(answer.items.size() > 1 ? answer.items[1].text : std::string());
  };
  switch (static_cast<EvictCode>(answer.code())) {
    case EvictCode::evicted:
    case EvictCode::marked:
      result.is_free = answer.code() == static_cast<int>(EvictCode::evicted);
      if (answer.items.size() > 1 && answer.items[1].integer >= 0) {
        result.within = read_remaining(answer.items[1].integer);
      }
      return result;
    case EvictCode::not_held:
      result.failure = {Error::not_held, name};
      return result;
    case EvictCode::sealed:
      result.failure = {Error::sealed, "dlock migrate moves or opens it"};
      return result;
    case EvictCode::foreign:
      result.failure = unaware_holder();
      return result;
    case EvictCode::other_token:
      break;
  }
  const auto token = held().token;
  result.failure = {Error::held_with_other_token,
                    token ? fmt::format("{} is held with token {}", name, *token)
                          : fmt::format("{} is held by a client that has no tokens", name)};
  return result;
}

}  // namespace dlock::redis
