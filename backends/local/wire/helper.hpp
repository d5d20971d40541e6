// SPDX-License-Identifier: Apache-2.0
//
// Runs system calls that may block (fsync, a first access to a disk) on a helper thread, one batch
// at a time. There is only one thread, for any number of locks.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "backends/local/error.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::local {

/// Loop only. May be destroyed while a batch runs: it ends on its own.
class Helper {
 public:
  explicit Helper(Env& env) : state_(std::make_shared<State>(env)) {}

  /// Runs `job` on the helper thread. False if it has not ended by the deadline or by close(); it
  /// may go on then, so it owns all that it touches.
  asio::awaitable<bool> run(Job job, TimePoint deadline);

  /// From now on no caller waits for a job's end. A coroutine that still waited when the loop ends
  /// would never end, nor release its resources. The jobs continue.
  void close() noexcept;

  /// Returns why a job has not ended by its deadline, as far as it is known: `about` a path.
  Failure why_late(const std::string& about) const;

 private:
  struct Task {
    Job job;
    OneShot<bool> done;
  };
  struct State {
    explicit State(Env& e) : env(e) {}
    Env& env;
    std::vector<Task> waiting;
    std::shared_ptr<std::vector<Task>> batch;  ///< that runs
    bool running = false;
    bool closed = false;
    /// The batch has its thread: set by that.
    std::shared_ptr<std::atomic<bool>> begun;
  };
  static void start(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace dlock::local
