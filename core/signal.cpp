// SPDX-License-Identifier: Apache-2.0
#include "core/signal.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace dlock::core {

// One that nobody waits for any more may end on a helper thread, and touches nothing of the loop's.
Signal::~Signal() {
  if (timer_ != 0) env_.cancel(timer_);
}

asio::awaitable<bool> Signal::wait_until(TimePoint deadline) {
  if (pending_) {
    pending_ = false;
    co_return true;
  }
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(bool)>(
      [this, deadline](auto handler) {
        waiter_ = [handler = std::move(handler)](bool notified) mutable {
          std::move(handler)(notified);
        };
        if (deadline != kNever) timer_ = env_.call_at(deadline, [this] { finish(false); });
      },
      asio::use_awaitable);
}

void Signal::notify() noexcept {
  if (waiter_) {
    finish(true);
  } else {
    pending_ = true;
  }
}

void Signal::finish(bool notified) {
  env_.cancel(std::exchange(timer_, 0));
  if (!waiter_) return;
  asio::post(env_.executor(),
             [waiter = std::exchange(waiter_, {}), notified]() mutable { waiter(notified); });
}

asio::awaitable<void> sleep_until(Env& env, TimePoint when) {
  Signal signal(env);
  co_await signal.wait_until(when);
}

}  // namespace dlock::core
