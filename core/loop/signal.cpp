// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/signal.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace dlock::inline v0 {

/// The coroutine that waits: kept by the signal, then by what resumes it.
struct Signal::Waiter {
  using Handler = asio::async_result<asio::use_awaitable_t<>, void(bool)>::handler_type;
  std::optional<Handler> handler;

  void resume(bool notified) {
    auto resumed = std::move(*handler);
    handler.reset();
    std::move(resumed)(notified);
  }
};

// One that nobody waits for any more may end on a helper thread, and touches nothing of the loop's.
Signal::~Signal() {
  if (timer_ != 0) env_.cancel(timer_);
}

asio::awaitable<bool> Signal::wait_until(TimePoint deadline) {
  if (pending_) {
    pending_ = false;
    co_return true;
  }
  // All that needs memory comes first: an exception between the suspension of a coroutine and its
  // handler's place would end it without a word.
  auto waiter = std::make_shared<Waiter>();
  auto waiting = asio::async_initiate<const asio::use_awaitable_t<>&, void(bool)>(
      [this, waiter](Waiter::Handler handler) {
        waiter->handler.emplace(std::move(handler));
        waiter_ = waiter;
      },
      asio::use_awaitable);
  if (deadline != kNever) {
    timer_ = env_.call_at(deadline, [this] { on_timer(); });
  } else {
    timer_ = env_.reserve([this] { on_timer(); });
  }
  const bool notified = co_await std::move(waiting);
  co_return notified;
}

void Signal::notify() noexcept {
  if (waiter_ && !late_) {
    finish(true);
  } else {
    pending_ = true;
  }
}

void Signal::on_timer() noexcept {
  timer_ = 0;
  if (!late_) return finish(false);
  late_ = false;
  const auto waiter = std::exchange(waiter_, nullptr);
  try {
    waiter->resume(told_);
  } catch (const std::exception&) {
    // Of a coroutine that has come to its end.
  }
}

void Signal::finish(bool notified) noexcept {
  if (!waiter_) return env_.cancel(std::exchange(timer_, 0));
  try {
    asio::post(env_.executor(), [waiter = waiter_, notified] { waiter->resume(notified); });
  } catch (const std::exception&) {
    late_ = true;
    told_ = notified;
    // Nobody is on the stack below a timer.
    if (timer_ == 0) return on_timer();
    return env_.move(timer_, env_.now());
  }
  env_.cancel(std::exchange(timer_, 0));
  waiter_.reset();
}

asio::awaitable<void> sleep_until(Env& env, TimePoint when) {
  Signal signal(env);
  co_await signal.wait_until(when);
}

}  // namespace dlock::inline v0
