// SPDX-License-Identifier: Apache-2.0
//
// The coroutines of one store, counted, so that closing can wait for them. At the end of its task a
// coroutine runs the next one: to make a coroutine costs as much as the rest of a lock and unlock.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <vector>

#include "dlock/spi/signal.hpp"

namespace dlock::core {

/// Loop only. Must outlive its tasks: they hold the owner by shared_ptr.
class TaskGroup {
 public:
  explicit TaskGroup(Env& env);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Starts a task, which reports its outcome itself. A std::bad_alloc that leaves it ends the
  /// process; other exceptions end the task and are dropped.
  void spawn(asio::awaitable<void> task);
  /// Ends the coroutines that rest. None rests from now on.
  void dismiss();

  /// Returns the number of coroutines that wait for a task.
  std::size_t resting() const noexcept { return workers_.size(); }

  /// Returns true when no task runs any more, false at the deadline. One waiter.
  asio::awaitable<bool> wait_idle(TimePoint deadline);

 private:
  /// One task, counted while its coroutine lives, however that ends.
  class Running;
  /// A coroutine between two tasks.
  struct Worker;
  asio::awaitable<void> work(asio::awaitable<void> task, Running running);
  void resume(asio::awaitable<void> task);

  Env& env_;
  Signal idle_;
  int running_ = 0;
  std::vector<Worker*> workers_;  ///< without a task
  bool is_dismissed_ = false;
};

}  // namespace dlock::core
