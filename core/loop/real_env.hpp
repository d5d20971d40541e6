// SPDX-License-Identifier: Apache-2.0
//
// The Env of production: an io_context, a timerfd on CLOCK_BOOTTIME (so that a deadline which
// passed during suspend is noticed at resume), and helper threads made when something must block.
//
// Posted jobs have a separate queue, not the io_context's. The loop runs all of them, with all that
// they post, before it polls the sockets again. In an io_context's own queue each hop from handler
// to handler costs an epoll_wait().
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <mutex>
#include <random>

#include "core/loop/crew.hpp"
#include "core/loop/deliveries.hpp"
#include "core/loop/timer_queue.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

class RealEnv final : public Env {
 public:
  /// Throws std::system_error if the system has no descriptor left.
  RealEnv();
  /// Waits for the helper threads of run_blocking(), and runs what waited for one in vain. A thread
  /// of run_unbounded() is left behind.
  ~RealEnv() override;

  TimePoint now() const noexcept override { return BoottimeClock::now(); }
  std::int64_t wall_clock_ms() const noexcept override;
  std::uint64_t random() noexcept override;
  asio::any_io_executor executor() const override;
  void post(Job job) noexcept override;
  TimerId call_at(TimePoint when, Job job) override;
  void cancel(TimerId id) noexcept override;
  void run_blocking(Job job, Job done) override;
  void run_unbounded(Job job, Job done) override;

  /// The owner of the Env runs this from one thread.
  asio::io_context& context() noexcept { return io_; }
  /// Runs jobs that are posted from outside the loop. Any thread.
  class Runner {
   public:
    /// Returns true if the calling thread, which has posted a job, runs it.
    virtual bool takes_post() noexcept = 0;
    /// A job was posted for which takes_post() returned false.
    virtual void on_post() noexcept = 0;

   protected:
    ~Runner() = default;
  };
  /// Called before the first post; `runner` lives until this ends.
  void serve(Runner& runner) noexcept { runner_ = &runner; }
  /// Runs what is posted, on the loop.
  void run_posted();
  bool has_posted() const noexcept;
  /// Lets the io_context run the jobs that a Runner has accepted and does not run.
  void see_to_posted() noexcept;
  /// The next timer. On the loop.
  TimePoint next_due() const noexcept { return timers_.next(); }
  /// The thread that runs the loop returns from its wait. Any thread.
  void interrupt() const noexcept;
  Deliveries& deliveries() noexcept { return deliveries_; }

 private:
  class Unbounded;

  class Executor;
  class Turn;

  void arm();
  void await_timer();
  void run_due();
  using Jobs = detail::FunctionQueue<void()>;
  Jobs take_posted() noexcept;
  void put_back(Jobs jobs) noexcept;
  void run_scheduled();
  void schedule(std::unique_lock<std::mutex>& lock) noexcept;

  TimerQueue timers_;  // outlives io_: what dies with the loop's handlers still cancels timers
  mutable std::mutex posted_mutex_;  // as do these
  Jobs posted_;
  bool is_scheduled_ = false;  ///< the io_context has been asked to run what is posted
  bool is_draining_ = false;
  bool is_over_ = false;
  mutable asio::io_context io_{1};
  asio::posix::stream_descriptor timer_;
  const int wake_descriptor_;
  Runner* runner_ = nullptr;
  TimePoint armed_ = kNever;
  bool running_due_ = false;
  Deliveries deliveries_;
  std::shared_ptr<Crew> helpers_;
  std::shared_ptr<Unbounded> unbounded_;
  std::mutex random_mutex_;
  std::mt19937_64 random_;
};

}  // namespace dlock::core
