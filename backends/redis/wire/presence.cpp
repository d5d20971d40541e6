// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/presence.hpp"

#include <utility>

#include "backends/redis/wire/calls.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::redis {
namespace {

/// A server that says nothing for so long is left.
constexpr std::chrono::seconds kLongestSilence{5};
/// After a refusal: until the operator has changed it, waiters are woken.
constexpr std::chrono::seconds kRefusedPause{60};

Word milliseconds_word(std::chrono::milliseconds time) {
  return Word(static_cast<std::uint64_t>(time.count()));
}

}  // namespace

Presence::Presence(Env& env, std::shared_ptr<Link> link, std::string_view instance,
                   std::chrono::milliseconds patience, std::function<bool()> in_use)
    : env_(env),
      link_(std::move(link)),
      key_(std::string(kPresencePrefix).append(instance)),
      patience_(patience),
      in_use_(std::move(in_use)),
      stop_(env),
      ended_(env) {}

void Presence::want() {
  if (running_ || stopped_) return;
  running_ = true;
  spawn(env_, run(shared_from_this()));
}

void Presence::stop() {
  stopped_ = true;
  stop_.notify();
}

asio::awaitable<void> Presence::stopped(TimePoint deadline) {
  const auto self = shared_from_this();
  if (running_) co_await ended_.get_until(deadline);
}

// A caller that starts the loop right after its end waits for the rest of the pause.
asio::awaitable<void> Presence::run(std::shared_ptr<Presence> self) {
  do {
    co_await self->turn();
  } while (!self->stopped_ && self->in_use_());
  self->running_ = false;
  if (self->stopped_) self->ended_.set(true);
}

asio::awaitable<void> Presence::turn() {
  while (!stopped_ && env_.now() < next_) co_await stop_.wait_until(next_);
  if (stopped_ || !in_use_()) co_return;
  next_ = env_.now() + kBetweenWords;
  if (link_->up()) co_await say();
}

// The next one not before its answer: a server that is slow gets fewer.
asio::awaitable<void> Presence::say() {
  const auto sent = env_.now();
  const auto number = words_.begin(sent);
  ScriptCall call;
  call.keys.emplace_back(key_);
  call.arguments = {Word(number), milliseconds_word(kProbation), milliseconds_word(patience_)};
  const auto connection = link_->connection();
  const auto answer =
      co_await run_script(env_, connection, scripts().presence, call, sent + kLongestSilence);
  if (answer.kind == ScriptAnswer::Kind::refused) next_ = sent + kRefusedPause;
}

}  // namespace dlock::redis
