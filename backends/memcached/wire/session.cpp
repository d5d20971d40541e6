// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/server_list.hpp"

namespace dlock::memcached {
namespace {

/// A server that is silent for this long in one step is asked again, on a new connection.
constexpr std::chrono::seconds kStepPatience{3};

/// No command of the caller has been sent during the connection's steps.
Answer not_sent(Answer answer) {
  if (answer.outcome == Outcome::unknown) answer.outcome = Outcome::unavailable;
  if (answer.failure.error == make_error_code(Error::connection_lost)) {
    answer.failure.error = make_error_code(Error::not_connected);
  }
  // A refusal from before the server serves, or of a proxy without servers, is not final.
  if (answer.outcome == Outcome::refused &&
      answer.failure.error == make_error_code(Error::refused)) {
    answer.outcome = Outcome::unavailable;
    answer.failure.error = make_error_code(Error::server_error);
  }
  return answer;
}

asio::awaitable<Answer> as_awaitable(Answer answer) { co_return answer; }

/// Before it has said anything.
bool hangs_up(std::string_view text) {
  return text.find("disconnected") != text.npos || text.find("reset by peer") != text.npos ||
         text.find("Broken pipe") != text.npos;
}

}  // namespace

Session::Session(Env& env, Settings settings, OnFacts on_info)
    : env_(env),
      settings_(std::move(settings)),
      on_facts_(std::move(on_info)),
      client_(settings_.make_client(env, settings_.server, settings_.flags)),
      gate_(env),
      connecting_(env, 1) {
  info_.address = fmt::format("{}:{}", settings_.server.host, settings_.server.port);
}

// The wall clock here has whole milliseconds. A counter that is lost and created again within one
// of them must not be lower than before. So the microseconds are counted from when the millisecond
// was first seen.
std::int64_t Session::wall_clock_us() const {
  const auto ms = env_.wall_clock_ms();
  const auto now = env_.now();
  if (ms != wall_ms_) {
    wall_ms_ = ms;
    wall_ms_seen_ = now;
  }
  const auto beyond = std::chrono::floor<std::chrono::microseconds>(now - wall_ms_seen_).count();
  return ms * 1000 + std::clamp<std::int64_t>(beyond, 0, 999);
}

void Session::close() {
  is_closed_ = true;
  client_->close();
  connecting_.end_waiting();
}

bool Session::is_ready() const {
  return !is_closed_ && client_->is_open() && next_ == Step::done && env_.now() < list_due_;
}

asio::awaitable<Answer> Session::ready(TimePoint deadline) {
  if (is_ready()) co_return Answer{Outcome::done, {}, {}};
  Turns::Turn turn(connecting_);
  if (!turn.is_ours() && !is_closed_) co_await turn.wait(deadline);
  if (is_ready()) co_return Answer{Outcome::done, {}, {}};
  if (is_closed_) co_return Answer{Outcome::unavailable, failure(Error::closed), {}};
  if (!turn.is_ours()) co_return Answer{Outcome::unavailable, failure(Error::connecting), {}};
  if (deadline <= env_.now()) {
    co_return Answer{Outcome::unavailable, failure(Error::line_busy), {}};
  }
  const bool fit = client_->is_open() && next_ == Step::done;
  // Other clients may have arrived with another list of servers, or the server has lost this one.
  if (fit) next_ = Step::list;
  co_return co_await connect(deadline);
}

// A server that does not answer its first requests is asked again, on another connection.
TimePoint Session::step_deadline(TimePoint deadline) const {
  return std::min<TimePoint>(deadline, env_.now() + kStepPatience);
}

asio::awaitable<Answer> Session::connect(TimePoint deadline) {
  if (!client_->is_open()) {
    if (!pacer_.may_try(env_.now())) co_return Answer{Outcome::unavailable, last_failure_, {}};
    pacer_.tried(env_.now());
    next_ = Step::open;
    seen_ = info_;
    slowest_step_ = {};
  }
  while (next_ != Step::done) {
    const auto began = env_.now();
    // One that is broken off halfway costs the connection.
    if (deadline - began < slowest_step_ + slowest_step_ / 4) {
      // One slow answer must not keep callers with a short deadline out while the connection lasts.
      slowest_step_ /= 2;
      co_return Answer{Outcome::unavailable, failure(Error::connecting), {}};
    }
    auto taken = co_await take_step(deadline);
    auto answer = not_sent(std::move(taken));
    if (!answer.done()) {
      client_->drop();
      if (next_ == Step::canary && hangs_up(answer.failure.text)) {
        answer.failure.text += ": it closes each connection at once; is its limit reached (-c)?";
      }
      last_failure_ = answer.failure;
      co_return answer;
    }
    slowest_step_ = std::max(slowest_step_, env_.now() - began);
  }
  on_facts_(info_);
  co_return Answer{Outcome::done, {}, {}};
}

asio::awaitable<Answer> Session::take_step(TimePoint deadline) {
  Answer answer;
  switch (next_) {
    case Step::open:
      answer = co_await client_->open(step_deadline(deadline));
      break;
    // The first request: its answer also shows a server that refuses more connections.
    case Step::canary:
      answer = co_await check_canary(deadline);
      break;
    case Step::stats:
      answer = co_await ask_stats(deadline);
      break;
    case Step::settings:
      answer = co_await client_->settings(seen_, step_deadline(deadline));
      if (!answer.done()) break;
      seen_.canary_losses = info_.canary_losses;
      if (!same_run(info_, seen_)) gate_.close();
      info_ = seen_;
      break;
    case Step::list:
    case Step::done:
      answer = co_await check_list(deadline);
      break;
  }
  if (answer.done()) next_ = static_cast<Step>(static_cast<int>(next_) + 1);
  co_return answer;
}

asio::awaitable<Answer> Session::ask_stats(TimePoint deadline) {
  auto answer = co_await client_->stats(seen_, step_deadline(deadline));
  if (!answer.done()) co_return answer;
  // It is starting, or a proxy that has no server yet.
  if (seen_.version.empty()) {
    co_return Answer{
        Outcome::unavailable, failure(Error::not_connected, "it does not say its version"), {}};
  }
  if (auto error = version_error(seen_.version); !error.empty()) {
    co_return Answer{Outcome::refused, failure(Error::bad_version, std::move(error)), {}};
  }
  co_return answer;
}

// The first client stores it. A value that differs from the known one means a loss. A stored canary
// must be there: behind a proxy that stores nothing, every client would hold a lock.
asio::awaitable<Answer> Session::check_canary(TimePoint deadline) {
  const auto& key = settings_.canary_key;
  const std::vector<std::string> keys{key};
  auto found = co_await client_->gets(keys, step_deadline(deadline));
  if (!found.answer.done()) co_return found.answer;
  if (found.get(key) == nullptr) {
    const auto fresh = make_uuid(env_);
    auto laid = co_await client_->add(key, fresh, 0, step_deadline(deadline));
    if (laid.outcome == Outcome::refused &&
        laid.failure.error == make_error_code(Error::out_of_memory)) {
      // A lock will fare no better, but the store can be reached.
      co_return Answer{Outcome::done, {}, {}};
    }
    if (!laid.done() && laid.outcome != Outcome::not_stored) co_return laid;
    found = co_await client_->gets(keys, step_deadline(deadline));
    if (!found.answer.done()) co_return found.answer;
    if (found.get(key) == nullptr) {
      co_return Answer{Outcome::unavailable, failure(Error::keeps_nothing, key), {}};
    }
  }
  const auto& value = found.get(key)->value;
  if (!canary_.empty() && value != canary_) lost_all();
  canary_ = value;
  co_return Answer{Outcome::done, {}, {}};
}

// Its own number is of no use then: what it counted from is gone.
void Session::lost_all() {
  ++info_.canary_losses;
  client_->begin_era();
}

asio::awaitable<Answer> Session::check_list(TimePoint deadline) {
  const auto& key = settings_.list_key;
  const auto& ours = settings_.list_note;
  const auto exptime = settings_.list_exptime;
  list_due_ = env_.now() + std::chrono::seconds(exptime) / 4;
  if (key.empty()) co_return Answer{Outcome::done, {}, {}};
  const std::vector<std::string> keys{key};
  auto found = co_await client_->gets(keys, step_deadline(deadline));
  if (found.answer.done() && found.get(key) == nullptr) {
    auto laid = co_await client_->add(key, ours, exptime, step_deadline(deadline));
    if (laid.done() || laid.outcome == Outcome::refused) co_return Answer{Outcome::done, {}, {}};
    if (laid.outcome != Outcome::not_stored) co_return laid;
    found = co_await client_->gets(keys, step_deadline(deadline));  // another was quicker
  }
  if (!found.answer.done()) co_return found.answer;
  const auto* note = found.get(key);
  if (note == nullptr) co_return Answer{Outcome::done, {}, {}};  // it is gone again
  if (note->value != ours) {
    list_due_ = {};
    if (auto newer = newer_note(key, note->value); !newer.empty()) {
      co_return Answer{Outcome::refused, failure(Error::newer_format, std::move(newer)), {}};
    }
    auto words = other_note(info_.address, key, ours, note->value, exptime);
    co_return Answer{Outcome::refused, failure(Error::other_list, std::move(words)), {}};
  }
  // It outlives us from now on. That another did the same just before does as well.
  auto kept = co_await client_->cas(key, ours, exptime, note->number.cas, step_deadline(deadline));
  if (kept.outcome == Outcome::unknown) co_return kept;
  co_return Answer{Outcome::done, {}, {}};
}

SelfTestRun Session::self_test_run(TimePoint deadline) {
  return [this, deadline] {
    const auto id = make_uuid(env_);
    return send_self_test(*client_, self_test_order(settings_.self_test_key(id), id, env_.random()),
                          deadline);
  };
}

asio::awaitable<Answer> Session::pass_self_test(TimePoint deadline) {
  auto answer = co_await ready(deadline);
  if (!answer.done() || gate_.is_open()) co_return answer;
  auto run = self_test_run(deadline);
  const auto result = co_await gate_.pass(std::move(run), deadline);
  if (lets_in(result)) co_return answer;
  if (!result) co_return Answer{Outcome::unavailable, failure(Error::no_answer), {}};
  const bool is_unsafe = result->verdict() == SelfTest::Verdict::wrong;
  co_return Answer{is_unsafe ? Outcome::refused : Outcome::unavailable,
                   result->failure(info_.address, make_error_code(Error::self_test_failed)),
                   {}};
}

asio::awaitable<SelfTestReport> Session::self_test(TimePoint deadline) {
  auto answer = co_await ready(deadline);
  SelfTest test;
  if (answer.done()) {
    test = co_await run_self_test(self_test_run(deadline));
  } else {
    test.add(SelfTestStep::acquire, {SelfTestAnswer::Kind::unanswered, std::move(answer.failure)});
  }
  co_return test.report(info_.address);
}

// A ready session forwards a command without its own coroutine.

asio::awaitable<Answer> Session::add(const std::string& key, const std::string& value,
                                     std::time_t exptime, TimePoint deadline) {
  if (is_ready()) return client_->add(key, value, exptime, deadline);
  return when_ready([this, &key, &value, exptime,
                     deadline] { return client_->add(key, value, exptime, deadline); },
                    deadline);
}

// A number is not valid on another connection: the server may be another run, which numbers its
// items again, so that another item may have that number.

asio::awaitable<Answer> Session::cas(const std::string& key, const std::string& value,
                                     std::time_t exptime, const ItemNumber& number,
                                     TimePoint deadline) {
  if (!is_of_now(number)) return as_awaitable({Outcome::exists, {}, {}});
  return client_->cas(key, value, exptime, number.cas, deadline);
}

asio::awaitable<std::vector<Answer>> Session::cas_all(const std::vector<Replacement>& all,
                                                      TimePoint deadline) {
  std::vector<asio::awaitable<Answer>> asked;
  asked.reserve(all.size());
  for (const auto& one : all) {
    asked.push_back(cas(one.key, one.value, one.exptime, one.number, deadline));
  }
  std::vector<Answer> answers(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) answers[i] = co_await std::move(asked[i]);
  co_return answers;
}

asio::awaitable<Answer> Session::remove(const std::string& key, const ItemNumber& number,
                                        TimePoint deadline) {
  if (!is_of_now(number)) return as_awaitable({Outcome::exists, {}, {}});
  return client_->remove(key, number.cas, deadline);
}

bool Session::is_of_now(const ItemNumber& number) const {
  return is_ready() && number.era == client_->era();
}

template <class Command>
asio::awaitable<Answer> Session::when_ready(Command command, TimePoint deadline) {
  auto answer = co_await ready(deadline);
  if (answer.done()) answer = co_await command();
  co_return answer;
}

asio::awaitable<Number> Session::increment(const std::string& key, std::uint64_t by,
                                           TimePoint deadline) {
  if (is_ready()) return client_->increment(key, by, deadline);
  return increment_when_ready(key, by, deadline);
}

asio::awaitable<Number> Session::increment_when_ready(const std::string& key, std::uint64_t by,
                                                      TimePoint deadline) {
  Number number;
  number.answer = co_await ready(deadline);
  if (number.answer.done()) number = co_await client_->increment(key, by, deadline);
  co_return number;
}

asio::awaitable<Number> Session::seconds_left(const std::string& key, TimePoint deadline) {
  Number number;
  number.answer = co_await ready(deadline);
  if (number.answer.done()) number = co_await client_->seconds_left(key, deadline);
  co_return number;
}

asio::awaitable<Found> Session::gets(const std::vector<std::string>& keys, TimePoint deadline) {
  Found found;
  for (int attempt = 0; attempt < 2; ++attempt) {
    found.answer = co_await ready(deadline);
    if (!found.answer.done()) co_return found;
    found = co_await client_->gets(keys, deadline);
    const bool broken = found.answer.outcome == Outcome::unknown &&
                        found.answer.failure.error != make_error_code(Error::no_answer);
    if (!broken) break;
  }
  // An unanswered read is harmless.
  if (found.answer.outcome == Outcome::unknown) found.answer.outcome = Outcome::unavailable;
  co_return found;
}

asio::awaitable<Found> Session::gets_and_canary(std::vector<std::string> keys, TimePoint deadline) {
  keys.push_back(settings_.canary_key);
  // Another may lay a new one while we wait.
  const auto expected = canary_;
  auto found = co_await gets(keys, deadline);
  if (!found.answer.done()) co_return found;
  const auto* item = found.get(settings_.canary_key);
  // None could be laid: the next refresh tries again.
  if (canary_.empty() || canary_ != expected) co_return found;
  if (item == nullptr || item->value != canary_) {
    lost_all();
    canary_.clear();
    list_due_ = {};
    co_await refresh_facts(deadline);
  }
  co_return found;
}

asio::awaitable<Answer> Session::refresh_facts(TimePoint deadline) {
  auto answer = co_await ready(deadline);
  if (!answer.done()) co_return answer;
  auto seen = info_;
  answer = co_await client_->stats(seen, deadline);
  if (!answer.done()) co_return not_sent(std::move(answer));
  if (!same_run(info_, seen)) {
    client_->begin_era();
    gate_.close();
  }
  // Another may have noticed a loss while we waited.
  seen.canary_losses = info_.canary_losses;
  info_ = std::move(seen);
  if (canary_.empty()) answer = co_await check_canary(deadline);
  on_facts_(info_);
  co_return answer;
}

}  // namespace dlock::memcached
