// SPDX-License-Identifier: Apache-2.0
//
// Acquires, waits for, renews and releases a lock: the requests, and the meaning of their answers
// for the core.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "backends/redis/backend.hpp"
#include "backends/redis/lock/permits_calls.hpp"
#include "backends/redis/lock/readers_calls.hpp"
#include "backends/redis/rules/value.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;

/// Positions in the queue behind it are all the same to us.
constexpr std::int64_t kLastRank = 1'000'000;

Word count(milliseconds time) { return Word(static_cast<std::uint64_t>(time.count())); }

/// For what could not be sent.
template <class Answer, class Status>
Answer not_done(Status status, Failure failure) {
  Answer answer;
  answer.status = status;
  answer.failure = std::move(failure);
  return answer;
}

AtGrant at_grant(const KeyClaim& claim, bool with_range) {
  if (claim.maybe_queued) return AtGrant::leave_queue;
  return with_range ? AtGrant::bring_range : AtGrant::nothing;
}

ScriptCall acquire_call(const KeyClaim& claim, bool with_range, const WaitingTexts& texts,
                        milliseconds lock_delay, std::uint64_t until) {
  const auto fence = std::max<milliseconds>(kFenceMemory, 2 * claim.kept_for(lock_delay));
  ScriptCall call;
  call.keys = {claim.keys.lock(), claim.beside(kFenceKey), claim.beside(kQueueKey),
               claim.beside(kAliveKey), claim.beside(kNextKey)};
  const auto how = texts.text(claim.kind, at_grant(claim, with_range));
  call.arguments = {claim.waiter, count(claim.kept_for(lock_delay)), Word(claim.min_token()),
                    count(fence), Word(how, claim.arrival),          Word(until)};
  return call;
}

/// Adds the arguments of a script that notifies others. `seal`: the seal of a gate.
void put_waking(std::string_view seal, std::string_view waking, ScriptCall& call) {
  call.arguments.emplace_back(seal);
  call.arguments.emplace_back(waking);
}

/// Adds the arguments of acquire_under that acquire does not have.
void put_under_gate(const GateCheck& gate, const KeyBase& keys, std::string_view waking,
                    ScriptCall& call) {
  call.keys.emplace_back(keys.text, kNoteKey);
  put_waking(gate.seal, waking, call);
  call.arguments.emplace_back(gate.text);
}

const Script& acquire_script(bool fair, bool under_gate) {
  const auto& all = scripts();
  if (under_gate) return fair ? all.acquire_in_order_under : all.acquire_under;
  return fair ? all.acquire_in_order : all.acquire;
}

const Script& release_script(const KeyClaim& claim, bool search) {
  if (claim.request().permits != 0) return scripts().release_permits;
  if (claim.may_read()) return reader_scripts().release;
  if (claim.maybe_queued || search) return reader_scripts().withdraw;
  return claim.has_met_others() ? scripts().release : scripts().release_unwanted;
}

ScriptCall release_call(const KeyClaim& claim, bool search, std::string_view waking) {
  if (claim.request().permits != 0) return release_permits_call(claim);
  ScriptCall call;
  call.keys = {claim.keys.lock(), claim.beside(kQueueKey), claim.beside(kAliveKey),
               claim.beside(kNextKey), claim.beside(kFenceKey)};
  const bool queued = claim.maybe_queued || search;
  call.arguments = {claim.owner, queued ? std::string_view(claim.waiter) : "", waking};
  return call;
}

ClaimStatus status_of_failure(const ScriptAnswer& answer) {
  switch (answer.kind) {
    case ScriptAnswer::Kind::refused:
      return is_permanent(answer.verdict) ? ClaimStatus::failed : ClaimStatus::unavailable;
    case ScriptAnswer::Kind::not_sent:
      return ClaimStatus::unavailable;
    case ScriptAnswer::Kind::unknown:
    case ScriptAnswer::Kind::reply:
      break;
  }
  return ClaimStatus::unknown;
}

}  // namespace

/// Builds the call for `script`, also where the claim has become another kind since.
ScriptCall renew_call(const Script& script, const KeyClaim& claim, milliseconds lock_delay) {
  if (&script == &scripts().renew_permits) return renew_permits_call(claim, lock_delay);
  if (&script != &scripts().renew) {
    return renew_reader_call(claim, claim.kept_for(lock_delay), StepDown::no);
  }
  ScriptCall call;
  call.keys = {claim.keys.lock(), claim.beside(kAliveKey), claim.beside(kBrokenKey)};
  call.arguments = {claim.owner, count(claim.kept_for(lock_delay)), Word(claim.token)};
  return call;
}

Validity RedisBackend::validity(const Claim& claim, TimePoint sent) const {
  const Duration lease = claim.request().lease;
  return {sent + lease, sent + lease / 3};
}

// Not a coroutine: a claim with a token needs no frame here.
asio::awaitable<ClaimAnswer> RedisBackend::claim(ClaimPtr claim, TimePoint deadline) {
  auto ours = std::static_pointer_cast<KeyClaim>(std::move(claim));
  ours->woken = false;
  if (const auto token = next_token(*ours)) return claim_with(*token, std::move(ours), deadline);
  return claim_by_script(std::move(ours), WithRange::if_wanted, deadline);
}

asio::awaitable<ClaimAnswer> RedisBackend::claim_by_script(KeyClaimPtr ours, WithRange range,
                                                           TimePoint deadline) {
  bool ready = link_->up();
  if (auto given = take_handed(*ours); given.status == ClaimStatus::granted) {
    listen_for_others(ours);
    co_return given;
  }
  if (!ready) ready = co_await link_->ready(deadline);
  if (!ready) {
    const auto status = link_->failed_for_good() ? ClaimStatus::failed : ClaimStatus::unavailable;
    co_return not_done<ClaimAnswer>(status, link_->failure());
  }
  if (!self_test_.is_open()) {
    co_return co_await claim_after_self_test(std::move(ours), range, deadline);
  }
  if (ours->request().permits != 0) co_return co_await claim_permits(ours, deadline);
  if (ours->request().adoption) co_return co_await adopt(ours, deadline);
  const auto& gate = ours->request().gate;
  const bool reads = ours->request().mode == Mode::shared;
  const bool in_turn = capabilities_.fair || reads;
  const auto connection = link_->connection();
  const bool with_range = range == WithRange::if_wanted && may_use_tokens(*ours) &&
                          token_ranges_.is_wanted(connection, ours->keys.text, env_.now());
  auto call =
      acquire_call(*ours, with_range, waiting_texts_, lock_delay_, server_clock_.at(deadline));
  KeyBase gate_keys;
  if (gate) gate_keys = names_.base(gate->key);
  if (gate) put_under_gate(*gate, gate_keys, waking_, call);
  if (in_turn && !gate) put_waking("", waking_, call);
  const auto& script = reads ? reader_scripts().acquire : acquire_script(in_turn, gate != nullptr);
  if (ours->request().queue) ours->maybe_queued = true;
  const auto sent = env_.now();
  const auto asked = redis::ask(env_, *connection, script, call);
  co_await asked.pending.settled(deadline);
  auto answer = asked.answer(env_, *connection, [&] { return call; });
  if (is_unknown_hash(answer)) {
    answer = co_await run_text(env_, connection, script, call, deadline);
  }
  if (was_late(*ours, answer, sent)) {
    co_return co_await claim_by_script(std::move(ours), range, deadline);
  }
  if (with_range && !take_range(*ours, connection, answer, sent)) {
    co_return co_await claim_by_script(std::move(ours), range, deadline);
  }
  auto taken = take_acquired(*ours, answer, sent);
  if (taken.status == ClaimStatus::granted) listen_for_others(ours);
  const bool asks_place = ours->request().max_queue && !ours->place_told;
  if (taken.status == ClaimStatus::waiting && asks_place) {
    taken.waiting_before = co_await waiting_before(ours, deadline);
    ours->place_told = taken.waiting_before.has_value();
  }
  co_return taken;
}

// The server's clock was set forward, or another server answers.
bool RedisBackend::was_late(KeyClaim& claim, const ScriptAnswer& answer, TimePoint sent) {
  const bool is_late = answer.kind == ScriptAnswer::Kind::reply && answer.items.size() == 2 &&
                       answer.code() == static_cast<int>(AcquireCode::late);
  if (is_late) server_clock_.learn(read_token(answer.items[1].text), sent);
  const bool was_late_before = std::exchange(claim.was_late, is_late);
  return is_late && !was_late_before;
}

// Returns no grant if the message arrived late. Then the acquire script confirms the lock, and its
// answer is valid for longer.
ClaimAnswer RedisBackend::take_handed(KeyClaim& claim) {
  ClaimAnswer result;
  const auto handed = std::exchange(claim.handed, std::nullopt);
  const auto now = env_.now();
  if (!handed || closed_ || !link_->up()) return result;
  if (!is_believable(*handed, claim.request(), now)) return result;
  result = granted(claim, handed->token, now);
  result.validity = {handed->until, now + kConfirmAfter};
  return result;
}

ClaimAnswer RedisBackend::granted(KeyClaim& claim, std::uint64_t token, TimePoint sent) const {
  claim.was_granted = true;
  claim.releasing = false;
  claim.maybe_queued = false;
  claim.handed.reset();
  claim.epoch = epoch_;
  claim.token = token;
  ClaimAnswer result;
  result.status = ClaimStatus::granted;
  result.token = token;
  result.validity = validity(claim, sent);
  return result;
}

ClaimAnswer RedisBackend::take_acquired(KeyClaim& claim, const ScriptAnswer& answer,
                                        TimePoint sent) {
  if (answer.kind != ScriptAnswer::Kind::reply) {
    return not_done<ClaimAnswer>(status_of_failure(answer), answer.failure);
  }
  ClaimAnswer result;
  const auto code = static_cast<AcquireCode>(answer.code());
  const bool is_ours = code == AcquireCode::granted || code == AcquireCode::already_ours;
  const bool with_range = code == AcquireCode::granted_with_range;
  if ((is_ours && answer.items.size() == 2) || (with_range && answer.items.size() == 3)) {
    return granted(claim, read_token(answer.items[1].text), sent);
  }
  if (code == AcquireCode::busy && answer.items.size() == 4) {
    claim.position.rank = std::clamp<std::int64_t>(answer.items[1].integer, -1, kLastRank);
    claim.position.remaining = read_remaining(answer.items[2].integer);
    claim.arrival = answer.items[3].text;
    claim.asked = env_.now();
    result.status = claim.request().queue ? ClaimStatus::waiting : ClaimStatus::busy;
    return result;
  }
  if (code == AcquireCode::sealed && answer.items.size() == 3) {
    claim.position = {};
    claim.arrival = answer.items[2].text;
    claim.asked = env_.now();
    result.status = ClaimStatus::sealed;
    result.record = answer.items[1].text;
    return result;
  }
  if (code == AcquireCode::gate_changed && answer.items.size() == 2) {
    claim.position = {};
    claim.has_not_arrived();
    claim.maybe_queued = false;
    claim.asked = env_.now();
    result.status = ClaimStatus::gate_changed;
    result.record = answer.items[1].text;
    return result;
  }
  if (code == AcquireCode::no_token_left) {
    return not_done<ClaimAnswer>(ClaimStatus::failed, {Error::token_too_high, ""});
  }
  return not_done<ClaimAnswer>(ClaimStatus::unknown,
                               {Error::unexpected, "an answer of another form"});
}

asio::awaitable<void> RedisBackend::wait(ClaimPtr claim, TimePoint deadline) {
  const auto ours = std::static_pointer_cast<KeyClaim>(claim);
  subscriber_->want();
  const auto look_at = ours->asked + poll_delay(ours->position, poll_, env_.random());
  auto until = std::min(deadline, look_at);
  ++waiting_;
  const bool near = sends_presence(ours->request()) && ours->position.rank < kSpeakingRanks;
  if (near && subscriber_->stands()) presence_->want();
  while (!ours->woken && !closed_) {
    const bool told = co_await ours->signal.wait_until(until);
    if (!told) break;
  }
  --waiting_;
  ours->woken = false;
}

void RedisBackend::interrupt(Claim& claim) noexcept { static_cast<KeyClaim&>(claim).wake(); }

asio::awaitable<std::vector<ExtendAnswer>> RedisBackend::extend(std::vector<ClaimPtr> claims,
                                                                TimePoint deadline) {
  const bool mixed = std::any_of(claims.begin(), claims.end(), [](const ClaimPtr& claim) {
    return static_cast<const KeyClaim&>(*claim).may_read();
  });
  if (mixed) return extend_mixed(std::move(claims), deadline);
  return extend_with(scripts().renew, std::move(claims), deadline);
}

asio::awaitable<std::vector<ExtendAnswer>> RedisBackend::extend_with(const Script& script,
                                                                     std::vector<ClaimPtr> claims,
                                                                     TimePoint deadline) {
  std::vector<ExtendAnswer> answers(claims.size());
  const bool ready = co_await link_->ready(deadline);
  if (!ready) {
    for (auto& answer : answers) answer.failure = link_->failure();
    co_return answers;
  }
  std::vector<ScriptCall> calls;
  calls.reserve(claims.size());
  for (const auto& claim : claims) {
    calls.push_back(renew_call(script, static_cast<KeyClaim&>(*claim), lock_delay_));
  }
  const auto sent = env_.now();
  const auto connection = link_->connection();
  const auto results = co_await run_scripts(env_, connection, script, std::move(calls), deadline);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const auto& claim = static_cast<KeyClaim&>(*claims[i]);
    answers[i] = take_renewed(static_cast<KeyClaim&>(*claims[i]), results[i], sent);
    // Asked for as a writer's, and it may have become a reader's on the way.
    const bool as_writer = &script == &scripts().renew;
    if (claim.stepping_down && as_writer && answers[i].status == ExtendStatus::gone) {
      answers[i].status = ExtendStatus::unknown;
    }
    if (answers[i].status != ExtendStatus::extended) continue;
    listen_for_others(std::static_pointer_cast<KeyClaim>(claims[i]));
  }
  co_return answers;
}

ExtendAnswer RedisBackend::take_renewed(KeyClaim& claim, const ScriptAnswer& answer,
                                        TimePoint sent) {
  using Kind = ScriptAnswer::Kind;
  ExtendAnswer result;
  // Another program's data replaced the value of this process.
  const bool replaced =
      answer.kind == Kind::refused && answer.verdict.error == Error::foreign_format;
  if (answer.kind != Kind::reply && !replaced) {
    const auto status =
        answer.kind == Kind::unknown ? ExtendStatus::unknown : ExtendStatus::unavailable;
    return not_done<ExtendAnswer>(status, answer.failure);
  }
  auto code = replaced ? RenewCode::taken : static_cast<RenewCode>(answer.code());
  switch (code) {
    case RenewCode::renewed:
      claim.epoch = epoch_;
      result.status = ExtendStatus::extended;
      result.validity = validity(claim, sent);
      return result;
    case RenewCode::taken:
      result.status = ExtendStatus::gone;
      result.reason = LossReason::taken;
      return result;
    case RenewCode::evicted:
      result.status = ExtendStatus::gone;
      result.reason = LossReason::broken;
      if (answer.items.size() > 1) result.broken_by = break_words(read_break(answer.items[1].text));
      return result;
    case RenewCode::gone:
      result.status = ExtendStatus::gone;
      result.reason = claim.epoch == epoch_ ? LossReason::removed : last_change_;
      return result;
  }
  return not_done<ExtendAnswer>(ExtendStatus::unknown,
                                {Error::unexpected, "an answer of another form"});
}

// The same request finds late copies of an acquire, too: it asks for whatever is the owner's.
asio::awaitable<ReleaseAnswer> RedisBackend::release(ClaimPtr claim, bool search,
                                                     TimePoint deadline) {
  const auto ours = std::static_pointer_cast<KeyClaim>(claim);
  const bool before = ours->releasing;
  stop_listening(*ours);
  // Left to expire: what its holder may still do is over then.
  if (ours->is_lost() && lock_delay_.count() > 0) {
    co_return not_done<ReleaseAnswer>(ReleaseStatus::released, {});
  }
  if (closed_) co_return not_done<ReleaseAnswer>(ReleaseStatus::unavailable, link_->failure());
  bool ready = link_->up();
  if (!ready) ready = co_await link_->ready(deadline);
  if (!ready) {
    const auto status = before ? ReleaseStatus::unknown : ReleaseStatus::unavailable;
    co_return not_done<ReleaseAnswer>(status, link_->failure());
  }
  ours->handed.reset();
  const auto connection = link_->connection();
  const auto asked = ask_to_release(*ours, search, *connection);
  co_await asked.pending.settled(deadline);
  auto released = take_released(*ours, asked, search, connection, before);
  if (!released) co_return co_await release_by_text(ours, search, connection, deadline, before);
  co_return std::move(*released);
}

// Does not store the call while it runs, because each lock under way has a frame.
Asked RedisBackend::ask_to_release(const KeyClaim& claim, bool search, Connection& connection) {
  const auto first = claim.has_met_others() ? FirstToHear::others : FirstToHear::we;
  return redis::ask(env_, connection, release_script(claim, search),
                    release_call(claim, search, waking_), first);
}

asio::awaitable<ReleaseAnswer> RedisBackend::release_by_text(KeyClaimPtr claim, bool search,
                                                             std::shared_ptr<Connection> connection,
                                                             TimePoint deadline, bool before) {
  const auto call = release_call(*claim, search, waking_);
  const auto answer =
      co_await run_text(env_, connection, release_script(*claim, search), call, deadline);
  co_return take_released(*claim, answer, connection, before);
}

/// Empty: the server does not know the script (any more).
std::optional<ReleaseAnswer> RedisBackend::take_released(
    KeyClaim& claim, const Asked& asked, bool search, const std::shared_ptr<Connection>& connection,
    bool before) {
  const auto answer =
      asked.answer(env_, *connection, [&] { return release_call(claim, search, waking_); });
  if (is_unknown_hash(answer)) return std::nullopt;
  return take_released(claim, answer, connection, before);
}

/// `before`: an earlier release without an answer may have done it.
ReleaseAnswer RedisBackend::take_released(KeyClaim& claim, const ScriptAnswer& answer,
                                          const TokenRanges::Connection& connection, bool before) {
  using Kind = ScriptAnswer::Kind;
  const bool replaced =
      answer.kind == Kind::refused && answer.verdict.error == Error::foreign_format;
  if (answer.kind == Kind::unknown) claim.releasing = true;
  if (answer.kind != Kind::reply && !replaced) {
    const auto status = answer.kind == Kind::unknown || before ? ReleaseStatus::unknown
                                                               : ReleaseStatus::unavailable;
    return not_done<ReleaseAnswer>(status, answer.failure);
  }
  const auto code = static_cast<ReleaseCode>(answer.code());
  const bool alone = code == ReleaseCode::released_alone;
  const bool done = alone || code == ReleaseCode::released || before || !claim.was_granted;
  claim.maybe_queued = false;
  if (alone) {
    token_ranges_.released_alone(connection, claim.keys.text, env_.now());
  } else {
    token_ranges_.met_others(claim.keys.text, env_.now());
  }
  if (answer.items.size() == 2) tell_of_queue(claim, answer.items[1].text);
  ReleaseAnswer result;
  result.status = done ? ReleaseStatus::released : ReleaseStatus::not_holder;
  return result;
}

// Once: it would be said with every release.
void RedisBackend::tell_of_queue(const KeyClaim& claim, const std::string& why) {
  if (std::exchange(queue_told_, true)) return;
  const auto newer = newer_format(claim.beside(kAliveKey).text(), why, kFormatStamp, kFormat);
  if (!newer.empty()) return sink_.on_warning("waiters get no message at a release: " + newer);
  sink_.on_warning(
      fmt::format("no waiter can be notified at a release, waiters poll: {} or {} cannot be used "
                  "({}); delete the other program's data there",
                  claim.beside(kQueueKey).text(), claim.beside(kAliveKey).text(), why));
}

}  // namespace dlock::redis
