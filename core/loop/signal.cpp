// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/signal.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/detail/recycled.hpp"
#include "dlock/detail/suspended.hpp"

namespace dlock::inline v0 {

void spawn(Env& env, asio::awaitable<void> task) {
  asio::co_spawn(env.executor(), std::move(task),
                 [](const std::exception_ptr& thrown) { end_if_out_of_memory(thrown); });
}

/// The coroutine that waits: kept by the signal, then by what resumes it.
struct Signal::Waiter {
  detail::Suspended<bool> suspended;
};

// A signal without a waiter may be destroyed on a helper thread, and does not use the loop.
Signal::~Signal() {
  if (timer_ != 0) env_.cancel(timer_);
}

asio::awaitable<bool> Signal::wait_until(TimePoint deadline) {
  if (pending_) {
    pending_ = false;
    co_return true;
  }
  auto waiter = detail::make_recycled<Waiter>();
  auto waiting = asio::async_initiate<const asio::deferred_t&, void(bool)>(
      [this, waiter](auto handler) {
        waiter->suspended.keep(std::move(handler));
        waiter_ = waiter;
      },
      asio::deferred);
  if (deadline != kNever) {
    timer_ = env_.call_at(deadline, [this] {
      timer_ = 0;
      finish(false);
    });
  }
  const bool notified = co_await std::move(waiting);
  co_return notified;
}

void Signal::notify() noexcept {
  if (waiter_) {
    finish(true);
  } else {
    pending_ = true;
  }
}

void Signal::finish(bool notified) noexcept {
  env_.cancel(std::exchange(timer_, 0));
  if (!waiter_) return;
  or_end([&] {
    env_.post([waiter = std::exchange(waiter_, nullptr), notified] {
      waiter->suspended.resume(notified);
    });
  });
}

asio::awaitable<void> sleep_until(Env& env, TimePoint when) {
  Signal signal(env);
  co_await signal.wait_until(when);
}

}  // namespace dlock::inline v0
