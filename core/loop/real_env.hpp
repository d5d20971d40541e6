// SPDX-License-Identifier: Apache-2.0
//
// The Env of production: an io_context, a timerfd on CLOCK_BOOTTIME (so that a deadline which
// passed during suspend is noticed at resume), and helper threads made when something must block.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <memory>
#include <mutex>
#include <random>

#include "core/loop/crew.hpp"
#include "core/loop/timer_queue.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

class RealEnv final : public Env {
 public:
  /// Throws std::system_error if the system has no descriptor left.
  RealEnv();
  /// Waits for the helper threads, which are bounded, and runs what waited for one in vain.
  ~RealEnv() override;

  TimePoint now() const noexcept override { return BoottimeClock::now(); }
  std::int64_t wall_clock_ms() const noexcept override;
  std::uint64_t random() noexcept override;
  asio::any_io_executor executor() const override { return io_.get_executor(); }
  void post(Job job) noexcept override;
  TimerId call_at(TimePoint when, Job job) override;
  void cancel(TimerId id) noexcept override;
  TimerId reserve(Job job) override { return timers_.add(kNever, std::move(job)); }
  void move(TimerId id, TimePoint when) noexcept override;
  void run_blocking(Job job, Job done) override;

  /// Whoever owns the Env runs this from one thread.
  asio::io_context& context() noexcept { return io_; }

 private:
  /// The one wait for the timer has its memory here: without the timer no loss is told any more.
  struct WaitMemory {
    alignas(std::max_align_t) std::array<unsigned char, 512> bytes{};
    bool taken = false;
  };
  template <class T>
  struct WaitAllocator;

  void arm();
  void await_timer();
  void run_due();
  void run_posted();
  void catch_up();
  void wake() const noexcept;

  WaitMemory wait_memory_;
  TimerQueue timers_;  // outlives io_: what dies with the loop's handlers still cancels timers
  mutable asio::io_context io_{1};
  asio::posix::stream_descriptor timer_;
  const int wake_descriptor_;
  std::mutex posted_mutex_;
  detail::FunctionQueue<void()> posted_;
  std::size_t posted_size_ = 0;
  std::atomic<bool> is_behind_ = false;  ///< more in the queue than has been posted
  TimePoint armed_ = kNever;
  bool running_due_ = false;
  std::shared_ptr<Crew> helpers_;
  std::mutex random_mutex_;
  std::mt19937_64 random_;
};

}  // namespace dlock::core
