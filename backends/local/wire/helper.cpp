// SPDX-License-Identifier: Apache-2.0
#include "backends/local/wire/helper.hpp"

namespace dlock::local {

asio::awaitable<bool> Helper::run(Job job, TimePoint deadline) {
  OneShot<bool> done(state_->env);
  state_->waiting.push_back(Task{std::move(job), done});
  if (!state_->running) start(state_);
  if (state_->closed) co_return false;
  const auto ended = co_await done.get_until(deadline);
  co_return ended.value_or(false);
}

void Helper::close() noexcept {
  state_->closed = true;
  for (const auto& task : state_->waiting) task.done.set(false);
  if (!state_->batch) return;
  for (const auto& task : *state_->batch) task.done.set(false);
}

// Env tries again until there is a thread, so what waits needs no care here.
Failure Helper::why_late(const std::string& about) const {
  if (state_->closed) return make_failure(errc::closed, {});
  if (state_->running && !state_->begun->load()) {
    return make_failure(Error::no_thread,
                        about + ": no thread can be made (RLIMIT_NPROC or pids.max?)");
  }
  return make_failure(Error::too_slow, about);
}

void Helper::start(std::shared_ptr<State> state) {
  auto batch = std::make_shared<std::vector<Task>>();
  const auto begun = std::make_shared<std::atomic<bool>>(false);
  Job work = [batch, begun] {
    begun->store(true);
    for (auto& task : *batch) task.job();
  };
  Job told = [batch, state] {
    for (const auto& task : *batch) task.done.set(true);
    state->running = false;
    state->batch = nullptr;
    if (!state->waiting.empty()) start(state);
  };
  batch->swap(state->waiting);
  state->running = true;
  state->begun = begun;
  state->batch = batch;
  state->env.run_blocking(std::move(work), std::move(told));
}

}  // namespace dlock::local
