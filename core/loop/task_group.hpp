// SPDX-License-Identifier: Apache-2.0
//
// The coroutines of one store, counted, so that closing can wait for them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>

#include "dlock/spi/signal.hpp"

namespace dlock::core {

/// Loop only. Must outlive its tasks: they hold the owner by shared_ptr.
class TaskGroup {
 public:
  explicit TaskGroup(Env& env) : env_(env), idle_(env) {}

  /// Starts a task. Throws std::bad_alloc, and the task has not begun then. Whoever waits for its
  /// outcome is told by the task itself, whatever happens: an exception that leaves it ends it, and
  /// is dropped.
  void spawn(asio::awaitable<void> task);

  /// True when no task runs any more, false when the deadline came first. One waiter.
  asio::awaitable<bool> wait_idle(TimePoint deadline);

 private:
  /// One task, counted as long as its coroutine lives: however that ends.
  class Running;
  static asio::awaitable<void> run(asio::awaitable<void> task, Running running);

  Env& env_;
  Signal idle_;
  int running_ = 0;
  std::uint64_t begun_ = 0;
};

}  // namespace dlock::core
