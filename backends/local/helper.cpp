// SPDX-License-Identifier: Apache-2.0
#include "backends/local/helper.hpp"

namespace dlock::local {

core::asio::awaitable<bool> Helper::run(core::Job job, TimePoint deadline) {
  core::OneShot<bool> done(state_->env);
  state_->waiting.push_back(Task{std::move(job), done});
  if (!state_->running) start(state_);
  const auto ended = co_await done.get_until(deadline);
  co_return ended.has_value();
}

// Env tries again until there is a thread, so what waits needs no care here.
Failure Helper::why_late(const std::string& about) const {
  if (state_->running && !state_->begun->load()) {
    return make_failure(Error::no_thread,
                        about + ": no thread can be made (RLIMIT_NPROC or pids.max?)");
  }
  return make_failure(Error::too_slow, about);
}

void Helper::start(std::shared_ptr<State> state) {
  state->running = true;
  auto batch = std::make_shared<std::vector<Task>>(std::move(state->waiting));
  state->waiting.clear();
  const auto begun = std::make_shared<std::atomic<bool>>(false);
  state->begun = begun;
  auto& env = state->env;
  env.run_blocking(
      [batch, begun] {
        begun->store(true);
        for (auto& task : *batch) task.job();
      },
      [batch, state = std::move(state)]() mutable {
        for (const auto& task : *batch) task.done.set(true);
        state->running = false;
        if (!state->waiting.empty()) start(std::move(state));
      });
}

}  // namespace dlock::local
