// SPDX-License-Identifier: Apache-2.0
//
// How coroutines start, and how they wait: for a moment, for a signal, for a result. Built on Env's
// timers alone, so they run under virtual time too. Everything here lives on one loop and is
// touched there only.
//
// g++ 12.2 miscompiles a co_await inside a condition (`if (co_await x)`, `while (a && co_await x)`:
// the frame's slots get mixed up): name the result on a separate line, or in an if-initialiser.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "dlock/spi/env.hpp"

namespace dlock::inline v0 {

/// Runs `task` on the loop, up to its first wait inside this call. A std::bad_alloc that leaves the
/// task ends the process. Other exceptions are dropped: the task reports its outcome itself.
void spawn(Env& env, asio::awaitable<void> task);

/// One coroutine waits, others notify. A notification without a waiter is kept (once). Lifetime:
/// must outlive a wait under way; keep it by shared_ptr where that is not plain.
class Signal {
 public:
  explicit Signal(Env& env) : env_(env) {}
  ~Signal();
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  /// Returns true if notified (now or before), false at the deadline.
  asio::awaitable<bool> wait_until(TimePoint deadline);
  void notify() noexcept;

 private:
  struct Waiter;

  void finish(bool notified) noexcept;

  Env& env_;
  std::shared_ptr<Waiter> waiter_;
  TimerId timer_ = 0;
  bool pending_ = false;
};

/// Sleeps; not cancellable. kNever is not allowed.
asio::awaitable<void> sleep_until(Env& env, TimePoint when);

/// A result passed from a callback to one coroutine, which may give up waiting for it. Copies share
/// the result, so that a callback may be called after the coroutine has ended.
template <class T>
class OneShot {
 public:
  explicit OneShot(Env& env) : state_(std::make_shared<State>(env)) {}

  /// The first value counts.
  void set(T value) const {
    if (state_->value) return;
    state_->value.emplace(std::move(value));
    state_->signal.notify();
  }
  /// Returns the value; empty at the deadline. A later set() is then dropped.
  asio::awaitable<std::optional<T>> get_until(TimePoint deadline) const {
    auto state = state_;
    if (!state->value) co_await state->signal.wait_until(deadline);
    co_return std::move(state->value);
  }

 private:
  struct State {
    explicit State(Env& env) : signal(env) {}
    Signal signal;
    std::optional<T> value;
  };
  std::shared_ptr<State> state_;
};

}  // namespace dlock::inline v0
