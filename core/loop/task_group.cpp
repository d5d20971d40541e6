// SPDX-License-Identifier: Apache-2.0
#include "core/loop/task_group.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <exception>
#include <utility>

namespace dlock::core {

class TaskGroup::Running {
 public:
  explicit Running(TaskGroup& group) : group_(&group) { ++group.running_; }
  Running(Running&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
  Running& operator=(Running&&) = delete;
  ~Running() {
    if (group_ != nullptr && --group_->running_ == 0) group_->idle_.notify();
  }
  void begin() noexcept { ++group_->begun_; }

 private:
  TaskGroup* group_;
};

asio::awaitable<void> TaskGroup::run(asio::awaitable<void> task, Running running) {
  running.begin();
  try {
    co_await std::move(task);
  } catch (const std::exception&) {
    // Told already.
  }
}

void TaskGroup::spawn(asio::awaitable<void> task) {
  const auto before = begun_;
  try {
    asio::co_spawn(env_.executor(), run(std::move(task), Running(*this)), asio::detached);
  } catch (const std::exception&) {
    // A task that never waited posts its end, for which there may be no memory: it has ended.
    if (begun_ == before) throw;
  }
}

asio::awaitable<bool> TaskGroup::wait_idle(TimePoint deadline) {
  while (running_ > 0) {
    const bool notified = co_await idle_.wait_until(deadline);
    if (!notified) co_return false;
  }
  co_return true;
}

}  // namespace dlock::core
