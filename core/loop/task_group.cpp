// SPDX-License-Identifier: Apache-2.0
#include "core/loop/task_group.hpp"

#include <boost/asio/deferred.hpp>
#include <exception>
#include <utility>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/detail/suspended.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::core {
namespace {

/// About what a thousand that lock and unlock at once have under way; one that rests keeps less
/// than a kilobyte.
constexpr std::size_t kMostWorkers = 1024;

}  // namespace

class TaskGroup::Running {
 public:
  explicit Running(TaskGroup& group) : group_(&group) { ++group.running_; }
  Running(Running&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
  Running& operator=(Running&&) = delete;
  ~Running() { end(); }
  /// Another one, after end().
  void again(TaskGroup& group) noexcept {
    group_ = &group;
    ++group.running_;
  }
  void end() noexcept {
    const auto group = std::exchange(group_, nullptr);
    if (group != nullptr && --group->running_ == 0) group->idle_.notify();
  }

 private:
  TaskGroup* group_;
};

struct TaskGroup::Worker {
  detail::Suspended<> suspended;
  asio::awaitable<void> task;
};

TaskGroup::TaskGroup(Env& env) : env_(env), idle_(env) {}

TaskGroup::~TaskGroup() {
  for (auto* const worker : workers_) worker->suspended.drop();
}

// Nothing of the group is touched from the end of a task on, unless another begins.
asio::awaitable<void> TaskGroup::work(asio::awaitable<void> task, Running running) {
  Worker worker;
  worker.task = std::move(task);
  while (true) {
    try {
      co_await std::move(worker.task);
    } catch (const std::exception& error) {
      end_if_out_of_memory(error);
    }
    running.end();
    if (is_dismissed_ || workers_.size() >= kMostWorkers) co_return;
    auto rest = asio::async_initiate<const asio::deferred_t&, void()>(
        [this, at = &worker](auto handler) {
          at->suspended.keep(std::move(handler));
          workers_.push_back(at);
        },
        asio::deferred);
    // NOLINTNEXTLINE(performance-move-const-arg): Asio awaits an operation only as an rvalue
    co_await std::move(rest);
    if (!worker.task.valid()) co_return;
    running.again(*this);
  }
}

void TaskGroup::resume(asio::awaitable<void> task) {
  auto& worker = *workers_.back();
  workers_.pop_back();
  worker.task = std::move(task);
  worker.suspended.resume();
}

void TaskGroup::dismiss() {
  is_dismissed_ = true;
  while (!workers_.empty()) resume({});
}

void TaskGroup::spawn(asio::awaitable<void> task) {
  if (!workers_.empty()) return resume(std::move(task));
  dlock::spawn(env_, work(std::move(task), Running(*this)));
}

asio::awaitable<bool> TaskGroup::wait_idle(TimePoint deadline) {
  while (running_ > 0) {
    const bool notified = co_await idle_.wait_until(deadline);
    if (!notified) co_return false;
  }
  co_return true;
}

}  // namespace dlock::core
