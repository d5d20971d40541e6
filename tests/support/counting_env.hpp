// SPDX-License-Identifier: Apache-2.0
//
// CountingEnv: another Env that counts its timers, for tests of what is left behind.
#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "dlock/spi/env.hpp"

namespace dlock::tests {

/// Loop only. Lifetime: longer than its users, shorter than the other Env.
class CountingEnv final : public Env {
 public:
  explicit CountingEnv(Env& env) : env_(env) {}

  TimePoint now() const noexcept override { return env_.now(); }
  std::int64_t wall_clock_ms() const noexcept override { return env_.wall_clock_ms(); }
  std::uint64_t random() noexcept override { return env_.random(); }
  asio::any_io_executor executor() const override { return env_.executor(); }
  void post(Job job) noexcept override { env_.post(std::move(job)); }
  TimerId call_at(TimePoint when, Job job) override {
    return counted(std::move(job), [&](Job one) { return env_.call_at(when, std::move(one)); });
  }
  void cancel(TimerId id) noexcept override {
    live_.erase(id);
    env_.cancel(id);
  }
  void run_blocking(Job job, Job done) override {
    env_.run_blocking(std::move(job), std::move(done));
  }
  void run_unbounded(Job job, Job done) override {
    if (unbounded == Unbounded::run) return env_.run_unbounded(std::move(job), std::move(done));
    if (unbounded == Unbounded::never_end) job();
    held_.push_back(std::move(job));
    held_.push_back(std::move(done));
  }

  /// How run_unbounded() treats its jobs.
  enum class Unbounded { run, never_begin, never_end };
  Unbounded unbounded = Unbounded::run;

  /// Returns how many timers are neither over nor cancelled.
  std::size_t timers() const { return live_.size(); }

 private:
  template <class Make>
  TimerId counted(Job job, Make&& make) {
    const auto id = std::make_shared<TimerId>(0);
    *id = make([this, id, job = std::move(job)]() mutable {
      live_.erase(*id);
      job();
    });
    if (*id != 0) live_.insert(*id);
    return *id;
  }

  Env& env_;
  std::set<TimerId> live_;
  std::vector<Job> held_;
};

}  // namespace dlock::tests
