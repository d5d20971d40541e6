// SPDX-License-Identifier: Apache-2.0
#include "dlock/spi/signal.hpp"

#include <boost/asio/deferred.hpp>

#include "dlock/detail/recycled.hpp"
#include "dlock/detail/suspended.hpp"

namespace dlock::inline v0 {

/// The coroutine that waits: kept by the signal, then by what resumes it.
struct Signal::Waiter {
  detail::Suspended<bool> suspended;
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
  auto waiter = detail::make_recycled<Waiter>();
  auto waiting = asio::async_initiate<const asio::deferred_t&, void(bool)>(
      [this, waiter](auto handler) {
        waiter->suspended.keep(std::move(handler));
        waiter_ = waiter;
      },
      asio::deferred);
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
    waiter->suspended.resume(told_);
  } catch (const std::exception&) {
    // Of a coroutine that has come to its end.
  }
}

void Signal::finish(bool notified) noexcept {
  if (!waiter_) return env_.cancel(std::exchange(timer_, 0));
  try {
    env_.post([waiter = waiter_, notified] { waiter->suspended.resume(notified); });
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
