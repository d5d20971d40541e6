// SPDX-License-Identifier: Apache-2.0
//
// The coroutines of one store, counted, so that closing can wait for them. One that has come to the
// end of its task takes the next: to make one costs as much as the rest of a lock and unlock.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
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

  /// Starts a task. Throws std::bad_alloc, and the task has not begun then. Whoever waits for its
  /// outcome is told by the task itself, whatever happens: an exception that leaves it ends it, and
  /// is dropped.
  void spawn(asio::awaitable<void> task);
  /// Those that rest end, and nobody rests from now on. Else the destructor ends them, for which
  /// Asio needs memory, and ends the program where there is none.
  void dismiss() noexcept;

  /// So many coroutines wait for a task.
  std::size_t resting() const noexcept { return workers_.size(); }

  /// True when no task runs any more, false when the deadline came first. One waiter.
  asio::awaitable<bool> wait_idle(TimePoint deadline);

 private:
  /// One task, counted as long as its coroutine lives: however that ends.
  class Running;
  /// A coroutine between two tasks.
  struct Worker;
  asio::awaitable<void> work(asio::awaitable<void> task, Running running);
  void resume(asio::awaitable<void> task);
  /// For one more that rests, unless there are many.
  void make_place();

  Env& env_;
  Signal idle_;
  int running_ = 0;
  std::uint64_t begun_ = 0;
  std::vector<Worker*> workers_;  ///< without a task
  bool is_dismissed_ = false;
};

}  // namespace dlock::core
