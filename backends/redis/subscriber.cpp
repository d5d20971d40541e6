// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/subscriber.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "backends/redis/error.hpp"

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience{5};
constexpr seconds kPingInterval{5};
/// After a refusal: until the operator has changed the rights, waiters poll.
constexpr seconds kDeniedPause{60};

Command words(std::initializer_list<std::string_view> list) { return {list.begin(), list.end()}; }

}  // namespace

Subscriber::Subscriber(core::Env& env, std::shared_ptr<const DialSettings> settings,
                       std::string channel, Callbacks callbacks)
    : env_(env),
      settings_(std::move(settings)),
      channel_(std::move(channel)),
      callbacks_(std::move(callbacks)),
      wake_(env),
      ended_(env) {}

void Subscriber::want() {
  if (running_ || stopped_) return;
  running_ = true;
  asio::co_spawn(env_.executor(), run(shared_from_this()), asio::detached);
}

void Subscriber::stop() {
  stopped_ = true;
  if (connection_) connection_->close({Error::closed, ""});
  dialling_->stop();
  wake_.notify();
}

asio::awaitable<void> Subscriber::stopped(TimePoint deadline) {
  const auto self = shared_from_this();
  if (running_) co_await ended_.get_until(deadline);
}

asio::awaitable<void> Subscriber::run(std::shared_ptr<Subscriber> self) {
  auto& env = self->env_;
  Duration pause = milliseconds(20);
  while (!self->stopped_) {
    const auto failure = co_await self->subscribe(env.now() + kPatience);
    if (self->stopped_) break;
    if (!failure.error) {
      pause = milliseconds(20);
      self->callbacks_.on_subscribed();
      co_await self->listen();
      continue;
    }
    const bool denied =
        failure.error == Error::access_denied || failure.error == Error::password_wanted;
    if (denied) self->callbacks_.on_denied(failure);
    const auto until = env.now() + (denied ? Duration(kDeniedPause) : pause);
    co_await self->wake_.wait_until(until);
    pause = std::min<Duration>(pause * 2, seconds(1));
  }
  self->ended_.set(true);
}

asio::awaitable<Failure> Subscriber::subscribe(TimePoint deadline) {
  auto dialled = co_await dial(env_, settings_, false, dialling_, deadline);
  if (!dialled.connection) co_return std::move(dialled.failure);
  connection_ = std::move(dialled.connection);
  if (stopped_) connection_->close({Error::closed, ""});
  const std::weak_ptr<Subscriber> weak = shared_from_this();
  connection_->on_message = [weak](const std::string& payload) {
    const auto self = weak.lock();
    if (self && !self->stopped_) self->callbacks_.on_message(payload);
  };
  connection_->on_end = [weak] {
    if (const auto self = weak.lock()) self->wake_.notify();
  };
  auto pending = connection_->send(words({"SUBSCRIBE", channel_}));
  const auto outcome = co_await pending.get_until(deadline);
  if (!outcome || outcome->kind != Outcome::Kind::reply) {
    connection_->close({Error::no_answer, ""});
    co_return connection_->failure();
  }
  if (!outcome->reply.is_error()) co_return Failure{};
  Failure refused{judge(outcome->reply.text).error, outcome->reply.text};
  connection_->close(refused);
  co_return refused;
}

/// Until the connection ends, which a server that is silent for two intervals makes us do.
asio::awaitable<void> Subscriber::listen() {
  while (connection_->is_open() && !stopped_) {
    const auto now = env_.now();
    const bool told = co_await wake_.wait_until(now + kPingInterval);
    if (told || !connection_->is_open() || !callbacks_.in_use()) continue;
    auto pending = connection_->send(words({"PING"}));
    const auto outcome = co_await pending.get_until(env_.now() + kPingInterval);
    if (!outcome) connection_->close({Error::no_answer, ""});
  }
}

}  // namespace dlock::redis
