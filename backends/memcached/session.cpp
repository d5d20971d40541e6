// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/memcached/error.hpp"

namespace dlock::memcached {
namespace {

/// On the way to a server nothing of the caller's was sent yet.
Answer not_sent(Answer answer) {
  if (answer.outcome == Outcome::unknown) answer.outcome = Outcome::unavailable;
  if (answer.failure.error == make_error_code(Error::connection_lost)) {
    answer.failure.error = make_error_code(Error::not_connected);
  }
  return answer;
}

}  // namespace

Session::Session(core::Env& env, Settings settings, OnFacts on_facts)
    : env_(env),
      settings_(std::move(settings)),
      on_facts_(std::move(on_facts)),
      client_(settings_.driver.make_client(env, settings_.server, settings_.flags)) {
  facts_.address = fmt::format("{}:{}", settings_.server.host, settings_.server.port);
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
  if (client_->is_open()) return {Outcome::done, {}};
  if (client_->deadline() <= env_.now()) {
    return {Outcome::unavailable, failure(Error::line_busy)};
  }
  client_->open();
  auto answer = inspect();
  if (!answer.done()) client_->drop();
  return not_sent(std::move(answer));
}

Answer Session::inspect() {
  auto seen = facts_;
  auto answer = client_->stats(nullptr, seen);
  if (!answer.done()) return answer;
  if (auto error = version_error(seen.version); !error.empty()) {
    return {Outcome::refused, failure(Error::bad_version, std::move(error))};
  }
  answer = client_->stats("settings", seen);
  if (!answer.done()) return answer;
  facts_ = std::move(seen);
  return renew_canary();
}

// Whoever comes first lays it; a value that is not the one we know is a loss, once we knew one.
Answer Session::renew_canary() {
  const auto& key = settings_.canary_key;
  auto answer = client_->add(key, core::make_uuid(env_), 0);
  if (answer.done() || answer.outcome == Outcome::not_stored) {
    auto found = client_->gets({key});
    answer = std::move(found.answer);
    const auto* item = found.get(key);
    const std::string value = item == nullptr ? std::string() : item->value;
    if (!canary_.empty() && value != canary_) ++facts_.canary_losses;
    if (answer.done()) canary_ = value;
  } else if (answer.outcome == Outcome::refused) {
    // No memory even for that: a lock will fare no better, but the store can be reached.
    answer = {Outcome::done, {}};
  }
  on_facts_(facts_);
  return answer;
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
    ++facts_.canary_losses;
    canary_.clear();
    refresh_facts();
  }
  return found;
}

Answer Session::refresh_facts() {
  auto answer = ready();
  if (!answer.done()) return answer;
  auto seen = facts_;
  answer = client_->stats(nullptr, seen);
  if (!answer.done()) return not_sent(std::move(answer));
  facts_ = std::move(seen);
  if (canary_.empty()) return renew_canary();
  on_facts_(facts_);
  return answer;
}

}  // namespace dlock::memcached
