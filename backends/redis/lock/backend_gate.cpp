// SPDX-License-Identifier: Apache-2.0
//
// The requests of a plan's coordinator about all locks at once: the claimed names, and the highest
// token.
#include <algorithm>
#include <charconv>

#include "backends/redis/backend.hpp"

namespace dlock::redis {
// A holder under a gate is in its own key all the time. A waiter under a gate checks the gate again
// before its grant. Waiters without a gate are listed as far as a SCAN finds them.
asio::awaitable<Result<std::vector<std::string>>> RedisBackend::claimed_names(std::string prefix,
                                                                              TimePoint deadline) {
  auto names = co_await scan(prefix, {}, deadline);
  if (!names.value) co_return names;
  auto waited_for = co_await scan(prefix, "%queue", deadline);
  if (!waited_for.value) co_return waited_for;
  auto& all = *names.value;
  all.insert(all.end(), waited_for.value->begin(), waited_for.value->end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  Result<std::vector<std::string>> claimed;
  claimed.value.emplace();
  for (std::size_t at = 0; at < all.size(); at += kNamesAtOnce) {
    const bool ready = co_await link_->ready(deadline);
    std::vector<KeyBase> keys;
    std::vector<ScriptCall> calls;
    const auto end = std::min(all.size(), at + kNamesAtOnce);
    for (auto i = at; i < end; ++i) keys.push_back(names_.base(all[i]));
    for (const auto& one : keys) {
      ScriptCall call;
      call.keys = {one.lock(), Word(one.text, kQueueKey), Word(one.text, kAliveKey)};
      calls.push_back(std::move(call));
    }
    std::vector<ScriptAnswer> answers;
    if (ready) {
      const auto connection = link_->connection();
      answers =
          co_await run_scripts(env_, connection, scripts().claimed, std::move(calls), deadline);
    }
    for (auto i = at; i < end; ++i) {
      const bool answered = ready && answers[i - at].kind == ScriptAnswer::Kind::reply;
      if (!answered) {
        claimed.value.reset();
        claimed.failure = ready ? answers[i - at].failure : link_->failure();
        co_return claimed;
      }
      if (answers[i - at].code() == 1) claimed.value->push_back(all[i]);
    }
  }
  co_return claimed;
}

asio::awaitable<Result<std::uint64_t>> RedisBackend::highest_token(TimePoint deadline) {
  Result<std::uint64_t> highest;
  auto names = co_await scan({}, "%fence", deadline);
  highest.failure = std::move(names.failure);
  if (!names.value) co_return highest;
  std::uint64_t top = 0;
  std::size_t at = 0;
  do {
    const bool ready = co_await link_->ready(deadline);
    highest.failure = link_->failure();
    if (!ready) co_return highest;
    std::vector<KeyBase> keys;
    ScriptCall call;
    const auto end = std::min(names.value->size(), at + kNamesAtOnce);
    for (; at < end; ++at) keys.push_back(names_.base((*names.value)[at]));
    for (const auto& one : keys) call.keys.emplace_back(one.text, kFenceKey);
    const auto connection = link_->connection();
    const auto answer = co_await run_script(env_, connection, scripts().highest, call, deadline);
    highest.failure = answer.failure;
    if (answer.kind != ScriptAnswer::Kind::reply) co_return highest;
    std::uint64_t token = 0;
    const auto text = answer.items.size() == 2 ? answer.items[1].text : std::string();
    const auto read = std::from_chars(text.data(), text.data() + text.size(), token);
    highest.failure = {Error::unexpected, "an answer of another form"};
    if (read.ec != std::errc() || text.empty()) co_return highest;
    top = std::max(top, token);
  } while (at < names.value->size());
  highest.failure = {};
  highest.value = top;
  co_return highest;
}

}  // namespace dlock::redis
