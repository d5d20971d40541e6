// SPDX-License-Identifier: Apache-2.0
//
// Records in the lock's own key, notes beside it, and raised tokens: one script each.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "backends/redis/backend.hpp"

namespace dlock::redis {
namespace {

RecordAnswer answer_of(RecordStatus status, Failure failure) {
  RecordAnswer answer;
  answer.status = status;
  answer.failure = std::move(failure);
  return answer;
}

RecordAnswer take_refusal(const ScriptAnswer& answer) {
  // Another program's data under the key: what was expected is not there.
  if (answer.verdict.error == Error::foreign_format) {
    return answer_of(RecordStatus::conflict, answer.failure);
  }
  const auto status =
      is_permanent(answer.verdict) ? RecordStatus::failed : RecordStatus::unavailable;
  return answer_of(status, answer.failure);
}

RecordAnswer take_reply(const ScriptAnswer& answer, bool reads) {
  const auto code = static_cast<RecordCode>(answer.code());
  RecordAnswer result;
  result.status = reads || code == RecordCode::done ? RecordStatus::done : RecordStatus::conflict;
  if (code == RecordCode::found && answer.items.size() == 2) {
    result.found = answer.items[1].text;
    return result;
  }
  if (code == RecordCode::gate_changed && answer.items.size() == 2) {
    result.gate = answer.items[1].text;
    return result;
  }
  if (code == RecordCode::none || code == RecordCode::done) return result;
  if (code == RecordCode::no_token_left) {
    return answer_of(RecordStatus::failed, {Error::token_too_high, ""});
  }
  return answer_of(RecordStatus::unknown, {Error::unexpected, "an answer of another form"});
}

/// Adds the keys and arguments of a script under a gate. `keys`: the gate's.
void put_under(const GateCheck& gate, const KeyBase& keys, ScriptCall& call) {
  call.keys.emplace_back(keys.text, kNoteKey);
  call.arguments.emplace_back(gate.text);
}

Word fence_memory(std::chrono::milliseconds lease) {
  const auto memory = std::max<std::chrono::milliseconds>(kFenceMemory, 2 * lease);
  return Word(static_cast<std::uint64_t>(memory.count()));
}

}  // namespace

asio::awaitable<RecordAnswer> RedisBackend::run_record(const Script& script, ScriptCall call,
                                                       Access access, TimePoint deadline) {
  using Kind = ScriptAnswer::Kind;
  const bool reads = access == Access::reads;
  const bool ready = co_await link_->ready(deadline);
  if (!ready) {
    const auto status = link_->failed_for_good() ? RecordStatus::failed : RecordStatus::unavailable;
    co_return answer_of(status, link_->failure());
  }
  const auto connection = link_->connection();
  const auto answer = co_await run_script(env_, connection, script, call, deadline);
  if (answer.kind == Kind::reply) co_return take_reply(answer, reads);
  if (answer.kind == Kind::refused) {
    auto refused = take_refusal(answer);
    if (reads && refused.status == RecordStatus::conflict) refused.status = RecordStatus::failed;
    co_return refused;
  }
  const bool maybe = answer.kind == Kind::unknown && !reads;
  co_return answer_of(maybe ? RecordStatus::unknown : RecordStatus::unavailable, answer.failure);
}

asio::awaitable<RecordAnswer> RedisBackend::record(std::string name, TimePoint deadline) {
  const auto keys = names_.keys(name);
  ScriptCall call;
  call.keys = {keys.lock, keys.alive};
  co_return co_await run_record(scripts().record, std::move(call), Access::reads, deadline);
}

asio::awaitable<RecordAnswer> RedisBackend::seal(ClaimPtr held, std::string record,
                                                 TimePoint deadline) {
  const auto ours = std::static_pointer_cast<KeyClaim>(held);
  ScriptCall call;
  call.keys = {ours->keys.lock(), ours->beside(kQueueKey), ours->beside(kNextKey)};
  const auto value = fmt::format("{}:{}", ours->token, ours->owner);
  call.arguments = {value, record, kChannelPrefix};
  const auto& gate = ours->request().gate;
  KeyBase gate_keys;
  if (gate) gate_keys = names_.base(gate->key);
  if (gate) put_under(*gate, gate_keys, call);
  const auto& script = gate ? scripts().seal_under : scripts().seal;
  co_return co_await run_record(script, std::move(call), Access::writes, deadline);
}

asio::awaitable<RecordAnswer> RedisBackend::set_record_under(GatePtr gate, std::string name,
                                                             std::string from,
                                                             std::optional<std::string> to,
                                                             std::uint64_t min_token,
                                                             TimePoint deadline) {
  const auto keys = names_.keys(name);
  ScriptCall call;
  call.keys = {keys.lock, keys.fence, keys.queue, keys.next};
  if (!to) to.emplace();
  call.arguments = {from, *to, Word(min_token), fence_memory(lease_), kChannelPrefix};
  KeyBase gate_keys;
  if (gate) gate_keys = names_.base(gate->key);
  if (gate) put_under(*gate, gate_keys, call);
  const auto& script = gate ? scripts().set_record_under : scripts().set_record;
  co_return co_await run_record(script, std::move(call), Access::writes, deadline);
}

asio::awaitable<RecordAnswer> RedisBackend::raise(ClaimPtr held, std::uint64_t min_token,
                                                  TimePoint deadline) {
  const auto ours = std::static_pointer_cast<KeyClaim>(held);
  ScriptCall call;
  call.keys = {ours->keys.lock(), ours->beside(kFenceKey)};
  call.arguments = {ours->owner, Word(min_token), fence_memory(ours->request().lease)};
  co_return co_await run_record(scripts().raise, std::move(call), Access::writes, deadline);
}

asio::awaitable<RecordAnswer> RedisBackend::note(std::string key, TimePoint deadline) {
  const auto keys = names_.keys(key);
  ScriptCall call;
  call.keys = {keys.note, keys.alive};
  co_return co_await run_record(scripts().note, std::move(call), Access::reads, deadline);
}

asio::awaitable<RecordAnswer> RedisBackend::set_note(std::string key,
                                                     std::optional<std::string> from,
                                                     std::optional<std::string> to,
                                                     TimePoint deadline) {
  const auto keys = names_.base(key);
  if (!from) from.emplace();
  if (!to) to.emplace();
  ScriptCall call;
  call.keys = {Word(keys.text, kNoteKey)};
  call.arguments = {*from, *to};
  co_return co_await run_record(scripts().set_note, std::move(call), Access::writes, deadline);
}

asio::awaitable<Result<std::chrono::milliseconds>> RedisBackend::time(TimePoint deadline) {
  const auto keys = names_.keys("time");
  ScriptCall call;
  call.keys = {keys.note, keys.alive};
  const auto answer = co_await run_record(scripts().time, std::move(call), Access::reads, deadline);
  Result<std::chrono::milliseconds> result;
  result.failure = answer.failure;
  const auto text = answer.found.value_or(std::string());
  std::int64_t number = 0;
  const auto end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ptr == end && number > 0) {
    result.value = std::chrono::milliseconds(number);
  }
  co_return result;
}

}  // namespace dlock::redis
