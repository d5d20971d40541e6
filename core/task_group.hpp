// SPDX-License-Identifier: Apache-2.0
//
// The coroutines of one store, counted, so that closing can wait for them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <exception>

#include "core/signal.hpp"

namespace dlock::core {

/// Loop only. Must outlive its tasks: they hold the owner by shared_ptr.
class TaskGroup {
 public:
  explicit TaskGroup(Env& env) : env_(env), idle_(env) {}

  /// Starts a task. An exception that leaves it is a bug in the core and ends the program: a lock
  /// whose renewal died silently would be a lie.
  void spawn(asio::awaitable<void> task) {
    ++running_;
    asio::co_spawn(env_.executor(), std::move(task), [this](const std::exception_ptr& error) {
      if (error) std::terminate();
      if (--running_ == 0) idle_.notify();
    });
  }

  /// True when no task runs any more, false when the deadline came first. One waiter.
  asio::awaitable<bool> wait_idle(TimePoint deadline);

 private:
  Env& env_;
  Signal idle_;
  int running_ = 0;
};

}  // namespace dlock::core
