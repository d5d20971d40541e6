// SPDX-License-Identifier: Apache-2.0
//
// Process: one simulated program, as the Env of its stores. It may be paused (time passes, nothing
// runs, what arrives waits) and it may crash: it is cut off from the world then and takes itself
// apart unseen.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "dlock/spi/env.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

namespace asio = boost::asio;

class Process final : public Env {
 public:
  struct Clock {
    /// How much faster than the world's: 0.001 gains a millisecond a second.
    double drift = 0;
    /// Its wall clock less the world's.
    milliseconds wall_offset{0};
  };

  Process(World& world, std::string name, Clock clock);
  ~Process() override;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const noexcept { return name_; }
  World& world() noexcept { return world_; }

  TimePoint now() const noexcept override;
  std::int64_t wall_clock_ms() const noexcept override;
  std::uint64_t random() noexcept override { return world_.random(); }
  asio::any_io_executor executor() const override;
  void post(Job job) noexcept override { deliver(std::move(job)); }
  TimerId call_at(TimePoint when, Job job) override;
  void cancel(TimerId id) noexcept override;
  /// The job runs in a fiber of its own, which may park.
  void run_blocking(Job job, Job done) override;

  /// What comes from outside: runs on its loop, after a pause if there is one.
  void deliver(Job job);

  void pause();
  void resume();
  bool is_paused() const noexcept { return paused_; }
  /// On the world's clock; the beginning if it never paused.
  TimePoint resumed() const noexcept { return resumed_; }
  /// From now on nothing of it reaches the world: stores treat it as a host that is gone.
  void crash() noexcept { alive_ = false; }
  bool is_alive() const noexcept { return alive_; }
  void jump_wall_clock(milliseconds by) noexcept { clock_.wall_offset += by; }

  /// The world's moment at which its own clock shows `when`.
  TimePoint to_world(TimePoint when) const noexcept;

  /// The world's.
  void run_ready();

 private:
  class Context : public asio::execution_context {
   public:
    Context() = default;
    ~Context();
    std::deque<Job> ready;
    Process* process = nullptr;
  };
  struct Executor;

  void run_due(TimerId id);
  void wake();

  World& world_;
  const std::string name_;
  Clock clock_;
  const TimePoint started_;
  Duration stood_still_{};  ///< a planted clock that does not count suspend
  TimePoint paused_at_{};
  TimePoint resumed_{};
  bool paused_ = false;
  bool alive_ = true;
  bool scheduled_ = false;
  std::set<TimerId> timers_;
  std::map<TimerId, Job> due_;  ///< of those that were, not run yet
  mutable Context context_;
};

}  // namespace dlock::simulation
