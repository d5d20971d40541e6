// SPDX-License-Identifier: Apache-2.0
//
// System calls that may take long (fsync, a first look at a disk) run on a helper thread, one batch
// at a time: however many locks ask, there is one thread.
#pragma once

#include <memory>
#include <vector>

#include "core/env.hpp"
#include "core/signal.hpp"

namespace dlock::local {

/// Loop only. May be destroyed while a batch runs: it ends on its own.
class Helper {
 public:
  explicit Helper(core::Env& env) : state_(std::make_shared<State>(env)) {}

  /// Runs `job` on the helper thread. False if it has not ended by the deadline; it goes on then,
  /// so it owns all that it touches.
  core::asio::awaitable<bool> run(core::Job job, TimePoint deadline);

 private:
  struct Task {
    core::Job job;
    core::OneShot<bool> done;
  };
  struct State {
    explicit State(core::Env& e) : env(e) {}
    core::Env& env;
    std::vector<Task> waiting;
    bool running = false;
  };
  static void start(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace dlock::local
