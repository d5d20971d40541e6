// SPDX-License-Identifier: Apache-2.0
#include "core/loop/task_group.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <exception>
#include <utility>

#include "dlock/detail/suspended.hpp"

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
  void begin() noexcept { ++group_->begun_; }
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
    running.begin();
    try {
      co_await std::move(worker.task);
    } catch (const std::exception&) {
      // Told already.
    }
    running.end();
    if (is_dismissed_ || workers_.size() == workers_.capacity()) co_return;
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

// To rest takes no memory.
void TaskGroup::make_place() {
  const auto places = workers_.capacity();
  const auto wanted = static_cast<std::size_t>(running_) + 1;
  if (places < wanted && places < kMostWorkers) {
    workers_.reserve(std::min(kMostWorkers, std::max<std::size_t>(16, 2 * places)));
  }
}

void TaskGroup::dismiss() noexcept {
  is_dismissed_ = true;
  while (!workers_.empty()) {
    try {
      resume({});
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it has ended
    }
  }
}

void TaskGroup::spawn(asio::awaitable<void> task) {
  const auto before = begun_;
  try {
    if (!workers_.empty()) return resume(std::move(task));
    make_place();
    asio::co_spawn(env_.executor(), work(std::move(task), Running(*this)), asio::detached);
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
