// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/wire/subscriber.hpp"

#include <utility>

#include "backends/redis/error.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::redis {
namespace {

using std::chrono::seconds;

constexpr seconds kPatience{5};
constexpr seconds kPingInterval{5};
/// After a refusal of the right: until the operator has changed it, waiters poll.
constexpr seconds kDeniedPause{60};
/// After this number of ends in a row, a subscription counts only when it has lasted for some time.
/// All waiters poll each time that a subscription begins to count.
constexpr int kUnsteady = 3;

}  // namespace

Subscriber::Subscriber(Env& env, std::shared_ptr<const DialSettings> settings, std::string channel,
                       Callbacks callbacks)
    : env_(env),
      settings_(std::move(settings)),
      channel_(std::move(channel)),
      callbacks_(std::move(callbacks)),
      stop_(env),
      ended_(env) {}

void Subscriber::want() {
  if (running_ || stopped_) return;
  spawn(env_, run(shared_from_this()));
  running_ = true;
}

void Subscriber::listen_to(const std::string& channel) {
  const bool is_new = other_channels_.insert(channel).second;
  if (is_new && stands()) connection_->send(words({"SUBSCRIBE", channel}));
  want();
}

/// Messages that still arrive on the channel have no receiver.
void Subscriber::stop_listening_to(const std::string& channel) noexcept {
  other_channels_.erase(channel);
}

void Subscriber::stop() {
  stopped_ = true;
  if (connection_) connection_->close({Error::closed, ""});
  dialling_->stop();
  stop_.notify();
}

asio::awaitable<void> Subscriber::stopped(TimePoint deadline) {
  const auto self = shared_from_this();
  if (running_) co_await ended_.get_until(deadline);
}

// Whatever is thrown costs a try, never the loop.
asio::awaitable<void> Subscriber::run(std::shared_ptr<Subscriber> self) {
  while (!self->stopped_) {
    std::exception_ptr thrown;
    try {
      co_await self->turn();
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) self->give_up_turn(thrown);
  }
  self->ended_.set(true);
}

/// One try, and what it made until its end.
asio::awaitable<void> Subscriber::turn() {
  if (pace_.next() > env_.now()) co_await stop_.wait_until(pace_.next());
  if (stopped_) co_return;
  pace_.begin(env_.now());
  const auto made = co_await subscribe(env_.now() + kPatience);
  if (stopped_) co_return;
  if (made.failure.error) {
    pace_.failed(env_.now(), env_.random());
    const bool denied =
        made.failure.error == Error::access_denied || made.failure.error == Error::password_wanted;
    if (denied) pace_.wait_until(env_.now() + kDeniedPause);
    if (made.refused) callbacks_.on_refused(made.failure);
    co_return;
  }
  const auto since = env_.now();
  co_await listen(since);
  pace_.ended(env_.now(), env_.now() - since, env_.random());
}

void Subscriber::give_up_turn(const std::exception_ptr& thrown) {
  end_if_out_of_memory(thrown);
  pace_.failed(env_.now(), env_.random());
  dialling_->cut();
  if (connection_) connection_->close(failure_of(thrown));
}

asio::awaitable<Subscriber::Subscribed> Subscriber::subscribe(TimePoint deadline) {
  Subscribed made;
  auto dialled = co_await dial(env_, settings_, false, dialling_, deadline);
  made.failure = std::move(dialled.failure);
  made.refused = dialled.refused;
  if (!dialled.connection) co_return made;
  connection_ = std::move(dialled.connection);
  stands_ = false;
  if (stopped_) connection_->close({Error::closed, ""});
  const std::weak_ptr<Subscriber> weak = shared_from_this();
  connection_->on_message = [weak](const std::string& payload) {
    const auto self = weak.lock();
    if (self && !self->stopped_) self->callbacks_.on_message(payload);
  };
  end_ = std::make_shared<Signal>(env_);
  connection_->on_end = [end = end_] { end->notify(); };
  auto pending = connection_->send(words({"SUBSCRIBE", channel_}));
  const auto outcome = co_await pending.get_until(deadline);
  if (!outcome || outcome->kind != Outcome::Kind::reply) {
    connection_->close({Error::no_answer, ""});
    made.failure = connection_->failure();
    made.refused = made.failure.error == Error::no_places;
    co_return made;
  }
  if (!outcome->reply.is_error()) {
    for (const auto& channel : other_channels_) connection_->send(words({"SUBSCRIBE", channel}));
    co_return made;
  }
  made.failure = {judge(outcome->reply.text).error, outcome->reply.text};
  made.refused = true;
  connection_->close(made.failure);
  co_return made;
}

/// Until the connection ends, which a server that is silent for two intervals makes us do.
asio::awaitable<void> Subscriber::listen(TimePoint since) {
  bool believed = pace_.failures() < kUnsteady;
  stands_ = believed;
  if (believed) callbacks_.on_subscribed();
  while (connection_->is_open() && !stopped_) {
    const auto until = believed ? env_.now() + kPingInterval : since + Pace::kSettled;
    const bool ended = co_await end_->wait_until(until);
    if (ended || !connection_->is_open()) continue;
    if (!std::exchange(believed, true)) {
      stands_ = true;
      callbacks_.on_subscribed();
      continue;
    }
    if (!callbacks_.in_use()) continue;
    auto pending = connection_->send(words({"PING"}));
    const auto outcome = co_await pending.get_until(env_.now() + kPingInterval);
    if (!outcome) connection_->close({Error::no_answer, ""});
  }
}

}  // namespace dlock::redis
