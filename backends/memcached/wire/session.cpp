// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/memcached/error.hpp"
#include "backends/memcached/rules/server_list.hpp"

namespace dlock::memcached {
namespace {

/// A server that is silent for so long in one step is asked anew, on a new connection.
constexpr std::chrono::seconds kStepPatience{3};

/// On the way to a server nothing of the caller's was sent yet.
Answer not_sent(Answer answer) {
  if (answer.outcome == Outcome::unknown) answer.outcome = Outcome::unavailable;
  if (answer.failure.error == make_error_code(Error::connection_lost)) {
    answer.failure.error = make_error_code(Error::not_connected);
  }
  // What a server, or a proxy that has none, says before it serves is not its last word.
  if (answer.outcome == Outcome::refused &&
      answer.failure.error == make_error_code(Error::refused)) {
    answer.outcome = Outcome::unavailable;
    answer.failure.error = make_error_code(Error::server_error);
  }
  return answer;
}

/// libmemcached does not hand on what the server says before.
bool hangs_up(std::string_view text) {
  return text.find("disconnected") != text.npos || text.find("reset by peer") != text.npos;
}

}  // namespace

Session::Session(Env& env, Settings settings, OnFacts on_info)
    : env_(env),
      settings_(std::move(settings)),
      on_facts_(std::move(on_info)),
      client_(settings_.driver.make_client(env, settings_.server, settings_.flags)) {
  info_.address = fmt::format("{}:{}", settings_.server.host, settings_.server.port);
}

// The wall clock has whole milliseconds here, and a counter that is lost and made anew within one
// of them must not stand lower than before: what is missing is counted from when the millisecond
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

Answer Session::ready() {
  const bool fit = client_->is_open() && next_ == Step::done;
  if (fit && env_.now() < list_due_) return {Outcome::done, {}};
  if (deadline_ <= env_.now()) return {Outcome::unavailable, failure(Error::line_busy)};
  // Others may have come with another list of servers, or the server has lost ours.
  if (fit) next_ = Step::list;
  auto answer = connect();
  client_->until(deadline_);
  return answer;
}

// One that does not answer its first questions is asked anew, on another connection.
Client& Session::step() {
  client_->until(std::min<TimePoint>(deadline_, env_.now() + kStepPatience));
  return *client_;
}

Answer Session::connect() {
  if (!client_->is_open()) {
    if (!pacer_.may_try(env_.now())) return {Outcome::unavailable, last_failure_};
    pacer_.tried(env_.now());
    client_->open();
    next_ = Step::canary;
    seen_ = info_;
    slowest_step_ = {};
  }
  while (next_ != Step::done) {
    const auto began = env_.now();
    // One that is broken off halfway costs the connection.
    if (deadline_ - began < slowest_step_ + slowest_step_ / 4) {
      // One slow answer must not keep the impatient out for as long as the connection stands.
      slowest_step_ /= 2;
      return {Outcome::unavailable, failure(Error::connecting)};
    }
    auto answer = not_sent(take_step());
    if (!answer.done()) {
      client_->drop();
      if (next_ == Step::canary && hangs_up(answer.failure.text)) {
        answer.failure.text += ": it hangs up at once; has it no place for more connections (-c)?";
      }
      last_failure_ = answer.failure;
      return answer;
    }
    slowest_step_ = std::max(slowest_step_, env_.now() - began);
  }
  on_facts_(info_);
  return {Outcome::done, {}};
}

Answer Session::take_step() {
  Answer answer;
  switch (next_) {
    // The first one: its answer also tells of a server that has no place for us.
    case Step::canary:
      answer = check_canary();
      break;
    case Step::stats:
      answer = ask_stats();
      break;
    case Step::settings:
      answer = step().stats("settings", seen_);
      if (!answer.done()) break;
      seen_.canary_losses = info_.canary_losses;
      info_ = seen_;
      break;
    case Step::list:
    case Step::done:
      answer = check_list();
      break;
  }
  if (answer.done()) next_ = static_cast<Step>(static_cast<int>(next_) + 1);
  return answer;
}

Answer Session::ask_stats() {
  auto answer = step().stats(nullptr, seen_);
  if (!answer.done()) return answer;
  // It is starting, or a proxy that has no server yet.
  if (seen_.version.empty()) {
    return {Outcome::unavailable, failure(Error::not_connected, "it does not say its version")};
  }
  if (auto error = version_error(seen_.version); !error.empty()) {
    return {Outcome::refused, failure(Error::bad_version, std::move(error))};
  }
  return answer;
}

// Whoever comes first lays it; a value that is not the one we know is a loss, once we knew one.
// What has been laid must be there: behind a proxy that keeps nothing everybody would hold a lock.
Answer Session::check_canary() {
  const auto& key = settings_.canary_key;
  auto found = step().gets({key});
  if (!found.answer.done()) return found.answer;
  if (found.get(key) == nullptr) {
    auto laid = step().add(key, make_uuid(env_), 0);
    if (laid.outcome == Outcome::refused &&
        laid.failure.error == make_error_code(Error::out_of_memory)) {
      // A lock will fare no better, but the store can be reached.
      return {Outcome::done, {}};
    }
    if (!laid.done() && laid.outcome != Outcome::not_stored) return laid;
    found = step().gets({key});
    if (!found.answer.done()) return found.answer;
    if (found.get(key) == nullptr) {
      return {Outcome::unavailable, failure(Error::keeps_nothing, key)};
    }
  }
  const auto& value = found.get(key)->value;
  if (!canary_.empty() && value != canary_) ++info_.canary_losses;
  canary_ = value;
  return {Outcome::done, {}};
}

Answer Session::check_list() {
  const auto& key = settings_.list_key;
  const auto& ours = settings_.list_note;
  const auto exptime = settings_.list_exptime;
  list_due_ = env_.now() + std::chrono::seconds(exptime) / 4;
  if (key.empty()) return {Outcome::done, {}};
  auto found = step().gets({key});
  if (found.answer.done() && found.get(key) == nullptr) {
    auto laid = step().add(key, ours, exptime);
    if (laid.done() || laid.outcome == Outcome::refused) return {Outcome::done, {}};
    if (laid.outcome != Outcome::not_stored) return laid;
    found = step().gets({key});  // another was quicker
  }
  if (!found.answer.done()) return found.answer;
  const auto* note = found.get(key);
  if (note == nullptr) return {Outcome::done, {}};  // and gone again
  if (note->value != ours) {
    list_due_ = {};
    return {Outcome::refused,
            failure(Error::other_list, other_note(info_.address, key, ours, note->value, exptime))};
  }
  // It outlives us from now on. That another did the same just before does as well.
  const auto kept = step().cas(key, ours, exptime, note->cas);
  return kept.outcome == Outcome::unknown ? kept : Answer{Outcome::done, {}};
}

Answer Session::add(const std::string& key, const std::string& value, std::time_t exptime) {
  auto answer = ready();
  if (!answer.done()) return answer;
  return client_->add(key, value, exptime);
}

Answer Session::cas(const std::string& key, const std::string& value, std::time_t exptime,
                    std::uint64_t cas) {
  auto answer = ready();
  if (!answer.done()) return answer;
  return client_->cas(key, value, exptime, cas);
}

Number Session::increment(const std::string& key, std::uint64_t by) {
  auto answer = ready();
  if (!answer.done()) return {std::move(answer), 0};
  return client_->increment(key, by);
}

Found Session::gets(const std::vector<std::string>& keys) {
  Found found;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto answer = ready();
    if (!answer.done()) return {std::move(answer), {}};
    found = client_->gets(keys);
    const bool broken = found.answer.outcome == Outcome::unknown &&
                        found.answer.failure.error != make_error_code(Error::no_answer);
    if (!broken) break;
  }
  // Nobody is hurt by a read that was not answered.
  if (found.answer.outcome == Outcome::unknown) found.answer.outcome = Outcome::unavailable;
  return found;
}

Found Session::gets_and_canary(std::vector<std::string> keys) {
  keys.push_back(settings_.canary_key);
  auto found = gets(keys);
  if (!found.answer.done()) return found;
  const auto* item = found.get(settings_.canary_key);
  // None could be laid (no memory): the next refresh tries again.
  if (canary_.empty()) return found;
  if (item == nullptr || item->value != canary_) {
    ++info_.canary_losses;
    canary_.clear();
    list_due_ = {};
    refresh_facts();
  }
  return found;
}

Answer Session::refresh_facts() {
  auto answer = ready();
  if (!answer.done()) return answer;
  auto seen = info_;
  answer = client_->stats(nullptr, seen);
  if (!answer.done()) return not_sent(std::move(answer));
  info_ = std::move(seen);
  if (canary_.empty()) {
    answer = check_canary();
    client_->until(deadline_);
  }
  on_facts_(info_);
  return answer;
}

}  // namespace dlock::memcached
