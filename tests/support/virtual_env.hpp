// SPDX-License-Identifier: Apache-2.0
//
// VirtualEnv: the production coroutines under virtual time. An execution context of our own with a
// queue and a clock that jumps to the next timer: no thread, no system call, deterministic.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "core/loop/timer_queue.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::tests {

namespace asio = boost::asio;

class VirtualContext : public asio::execution_context {
 public:
  VirtualContext() = default;
  ~VirtualContext() {
    shutdown();
    // What dies with a handler may still queue another.
    while (!ready.empty()) {
      const auto job = std::move(ready.front());
      ready.pop_front();
    }
    destroy();
  }
  std::deque<Job> ready;
};

/// The executor of a VirtualContext: every handler goes to the end of the queue.
struct VirtualExecutor {
  VirtualContext* context_ptr;

  asio::execution_context& query(asio::execution::context_t) const noexcept { return *context_ptr; }
  static constexpr asio::execution::blocking_t::never_t query(
      asio::execution::blocking_t) noexcept {
    return {};
  }
  VirtualExecutor require(asio::execution::blocking_t::never_t) const { return *this; }
  bool operator==(const VirtualExecutor&) const noexcept = default;
  template <class F>
  void execute(F f) const {
    context_ptr->ready.emplace_back(std::move(f));
  }
};

class VirtualEnv final : public Env {
 public:
  explicit VirtualEnv(std::uint64_t seed = 1) : random_(seed) {}

  TimePoint now() const noexcept override { return now_; }
  std::int64_t wall_clock_ms() const noexcept override {
    return 1'700'000'000'000 + now_.time_since_epoch().count() / 1'000'000;
  }
  std::uint64_t random() noexcept override { return random_(); }
  asio::any_io_executor executor() const override { return VirtualExecutor{&context_}; }
  void post(Job job) noexcept override { context_.ready.push_back(std::move(job)); }
  TimerId call_at(TimePoint when, Job job) override {
    const auto own = std::make_shared<TimerId>();
    *own = timers_.add(when, [this, own, job = std::move(job)]() mutable {
      pending_.erase(*own);
      job();
    });
    pending_.insert(*own);
    issued_.insert(*own);
    return *own;
  }
  void cancel(TimerId id) noexcept override {
    EXPECT_TRUE(id == 0 || issued_.contains(id)) << "no timer ever had the id " << id;
    pending_.erase(id);
    timers_.remove(id);
  }
  /// Timers that are neither over nor cancelled.
  std::size_t pending_timers() const noexcept { return pending_.size(); }
  void run_blocking(Job job, Job done) override {
    job();
    context_.ready.push_back(std::move(done));
  }

  /// Runs handlers and timers up to `end`, then stands there.
  void run_until(TimePoint end) {
    for (;;) {
      run_ready();
      if (timers_.next() > end) break;
      now_ = std::max(now_, timers_.next());
      while (auto job = timers_.take_due(now_)) job();
    }
    now_ = std::max(now_, end);
  }
  void run_for(Duration time) { run_until(now_ + time); }
  /// The process is stopped: time passes, nothing runs.
  void pause_for(Duration time) { now_ += time; }

 private:
  void run_ready() {
    while (!context_.ready.empty()) {
      auto job = std::move(context_.ready.front());
      context_.ready.pop_front();
      job();
    }
  }

  std::set<TimerId> pending_;
  std::set<TimerId> issued_;
  core::TimerQueue timers_;
  mutable VirtualContext context_;
  TimePoint now_{std::chrono::hours(1)};
  std::mt19937_64 random_;
};

}  // namespace dlock::tests
