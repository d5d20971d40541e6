// SPDX-License-Identifier: Apache-2.0
//
// The self-test (dlock/spi/self_test/steps.hpp): the scripts and commands of locks, for a key with
// a random id, in one write. A second write sends the scripts' texts to a server that does not know
// their hashes.
#include <fmt/format.h>

#include <utility>

#include "backends/redis/backend.hpp"
#include "backends/redis/rules/value.hpp"

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;
using TestKind = SelfTestAnswer::Kind;

constexpr milliseconds kExpiry = kSelfTestExpiry;

Owner new_owner(Env& env) {
  Owner owner;
  owner.id = make_uuid(env);
  owner.app = "self-test";
  return owner;
}

/// Two owners and one key.
class Contest {
 public:
  Contest(const KeyMap& names, Env& env, std::string_view instance, const WaitingTexts& texts)
      : keys_(names.self_test_base(make_uuid(env))),
        first_(write_waiter(instance, new_owner(env), false)),
        other_(write_waiter(instance, new_owner(env), false)),
        how_(texts.text(WaiterKind::none, AtGrant::nothing)),
        key_(keys_.lock()),
        expiry_(std::to_string(kExpiry.count())) {}

  std::string_view first() const { return owner_in(first_); }
  std::string_view other() const { return owner_in(other_); }

  ScriptCall acquire(const WaiterText& waiter) const {
    ScriptCall call;
    call.keys = {keys_.lock(), beside(kFenceKey), beside(kQueueKey), beside(kAliveKey),
                 beside(kNextKey)};
    call.arguments = {waiter.text, expiry_, "0", expiry_, how_, Word(ServerClock::kNoLimit)};
    return call;
  }
  ScriptCall acquire() const { return acquire(first_); }
  ScriptCall acquire_as_another() const { return acquire(other_); }
  ScriptCall release(std::string_view owner, std::string_view waking) const {
    ScriptCall call;
    call.keys = {keys_.lock(), beside(kQueueKey), beside(kAliveKey), beside(kNextKey),
                 beside(kFenceKey)};
    call.arguments = {owner, "", waking};
    return call;
  }
  /// As a lock is acquired without a script.
  Command set_as_another() const {
    return {"SET", key_, "1:" + std::string(other()), "NX", "PX", expiry_};
  }
  Command read() const { return {"GET", key_}; }

 private:
  static std::string_view owner_in(const WaiterText& waiter) {
    return std::string_view(waiter.text).substr(waiter.owner_at);
  }
  Word beside(std::string_view suffix) const { return {keys_.text, suffix}; }

  const KeyBase keys_;
  const WaiterText first_;
  const WaiterText other_;
  const std::string_view how_;
  const std::string key_;
  const std::string expiry_;
};

SelfTestAnswer unanswered(Failure why) { return {TestKind::unanswered, std::move(why)}; }

SelfTestAnswer refused(const Verdict& verdict, Failure why) {
  return {is_permanent(verdict) ? TestKind::denied : TestKind::unanswered, std::move(why)};
}

SelfTestAnswer other_form() {
  return unanswered({Error::unexpected, "an answer of another form to the self-test"});
}

/// For a script call without a reply.
SelfTestAnswer not_replied(const ScriptAnswer& answer) {
  if (answer.kind == ScriptAnswer::Kind::refused) return refused(answer.verdict, answer.failure);
  return unanswered(answer.failure);
}

SelfTestAnswer acquired(const ScriptAnswer& answer) {
  if (answer.kind != ScriptAnswer::Kind::reply) return not_replied(answer);
  const bool has_token = answer.items.size() > 1 && read_token(answer.items[1].text) != 0;
  switch (static_cast<AcquireCode>(answer.code())) {
    case AcquireCode::granted:
    case AcquireCode::already_ours:
      return has_token ? SelfTestAnswer{TestKind::yes} : other_form();
    case AcquireCode::busy:
      return {TestKind::no};
    default:
      return other_form();
  }
}

SelfTestAnswer released(const ScriptAnswer& answer) {
  if (answer.kind != ScriptAnswer::Kind::reply) return not_replied(answer);
  switch (static_cast<ReleaseCode>(answer.code())) {
    case ReleaseCode::released:
    case ReleaseCode::released_alone:
      return {TestKind::yes};
    case ReleaseCode::not_ours:
      return {TestKind::no};
  }
  return other_form();
}

/// `is_yes` judges a reply that is not an error.
template <class IsYes>
SelfTestAnswer answer_of(const Pending& asked, const Connection& connection, IsYes is_yes) {
  const auto outcome = asked.take();
  if (!outcome || outcome->kind != Outcome::Kind::reply) {
    return unanswered(connection.is_open() ? Failure{Error::no_answer, ""} : connection.failure());
  }
  const auto& reply = outcome->reply;
  if (reply.is_error()) {
    const auto verdict = judge(reply.text);
    return refused(verdict, {verdict.error, reply.text});
  }
  return {is_yes(reply) ? TestKind::yes : TestKind::no};
}

}  // namespace

asio::awaitable<RedisBackend::SelfTestSent> RedisBackend::send_self_test_by(
    ScriptBy by, std::shared_ptr<Connection> connection, TimePoint deadline) {
  const Contest contest(names_, env_, instance_, waiting_texts_);
  const auto& acquire = scripts().acquire;
  const auto& release = scripts().release_unwanted;
  const auto acquire_call = contest.acquire();
  const auto contend_call = contest.acquire_as_another();
  const auto steal_call = contest.release(contest.other(), waking_);
  const auto release_call = contest.release(contest.first(), waking_);
  connection->gather();
  const auto acquiring = redis::ask(env_, *connection, acquire, acquire_call, by);
  const auto contending = redis::ask(env_, *connection, acquire, contend_call, by);
  const auto setting = connection->send(contest.set_as_another());
  const auto stealing = redis::ask(env_, *connection, release, steal_call, by);
  const auto reading = connection->send(contest.read());
  const auto releasing = redis::ask(env_, *connection, release, release_call, by);

  SelfTestSent sent;
  auto& test = sent.test;
  co_await acquiring.pending.settled(deadline);
  const auto first = acquiring.answer(env_, *connection, [&] { return acquire_call; });
  test.add(SelfTestStep::acquire, acquired(first));
  co_await contending.pending.settled(deadline);
  const auto second = contending.answer(env_, *connection, [&] { return contend_call; });
  test.add(SelfTestStep::acquire_as_another, acquired(second));
  co_await setting.settled(deadline);
  test.add(SelfTestStep::acquire_as_another,
           answer_of(setting, *connection,
                     [](const Reply& reply) { return reply.kind == Reply::Kind::status; }));
  co_await stealing.pending.settled(deadline);
  const auto stolen = stealing.answer(env_, *connection, [&] { return steal_call; });
  test.add(SelfTestStep::release_as_another, released(stolen));
  co_await reading.settled(deadline);
  const auto token = first.items.size() > 1 ? first.items[1].text : std::string();
  const auto value = fmt::format("{}:{}", token, contest.first());
  test.add(SelfTestStep::read_back, answer_of(reading, *connection, [&](const Reply& reply) {
             return reply.text == value;
           }));
  co_await releasing.pending.settled(deadline);
  const auto gone = releasing.answer(env_, *connection, [&] { return release_call; });
  test.add(SelfTestStep::remove, released(gone));
  sent.has_unknown_hash = is_unknown_hash(first) || is_unknown_hash(second) ||
                          is_unknown_hash(stolen) || is_unknown_hash(gone);
  co_return sent;
}

asio::awaitable<SelfTest> RedisBackend::send_self_test(std::shared_ptr<Connection> connection,
                                                       TimePoint deadline) {
  auto sent = co_await send_self_test_by(ScriptBy::hash, connection, deadline);
  if (sent.has_unknown_hash) {
    sent = co_await send_self_test_by(ScriptBy::text, connection, deadline);
  }
  co_return std::move(sent.test);
}

asio::awaitable<ClaimAnswer> RedisBackend::claim_after_self_test(KeyClaimPtr ours, WithRange range,
                                                                 TimePoint deadline) {
  const auto connection = link_->connection();
  SelfTestRun run = [this, connection, deadline] { return send_self_test(connection, deadline); };
  const auto result = co_await self_test_.pass(std::move(run), deadline);
  if (lets_in(result)) {
    if (link_->connection() == connection) tested_run_ = facts_.run_id;
    co_return co_await claim_by_script(std::move(ours), range, deadline);
  }
  ClaimAnswer answer;
  answer.status = ClaimStatus::unavailable;
  answer.failure = {Error::no_answer, ""};
  if (result) answer.failure = result->failure(settings_->address(), Error::self_test_failed);
  if (answer.failure.error == Error::self_test_failed) answer.status = ClaimStatus::failed;
  co_return answer;
}

asio::awaitable<std::vector<SelfTestReport>> RedisBackend::self_test(TimePoint deadline) {
  SelfTest test;
  const bool ready = co_await link_->ready(deadline);
  if (ready) {
    const auto connection = link_->connection();
    SelfTestRun run = [this, connection, deadline] { return send_self_test(connection, deadline); };
    test = co_await run_self_test(std::move(run));
  } else {
    test.add(SelfTestStep::acquire, unanswered(link_->failure()));
  }
  std::vector<SelfTestReport> reports;
  reports.push_back(test.report(settings_->address()));
  co_return reports;
}

}  // namespace dlock::redis
