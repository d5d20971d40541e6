// SPDX-License-Identifier: Apache-2.0
//
// FleetProgram: what a simulated process of any fleet does with locks. It wants one, holds it for a
// while and gives it back, again and again, and may be killed at any moment. How it acquires is for
// the fleet's own kind of program to say.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "core/store/acquisition.hpp"
#include "migration/move/steps.hpp"
#include "migration/plan.hpp"
#include "tests/simulation/migration/wire.hpp"
#include "tests/simulation/recorder.hpp"

namespace dlock::simulation::migration {

using core::migration::Goal;
using core::migration::Plan;

/// What the programs of a run share.
struct FleetState {
  Plan plan;
  Goal goal = Goal::rollback;  ///< the operators' present aim
  /// Which lock a worker wants next.
  std::function<std::string()> choose;
  bool stopping = false;
  Duration longest_hold = milliseconds(300);
  Duration longest_think = milliseconds(300);
  Duration long_work = Duration(kLease) * 2;
  double long_works = 0.1;  ///< how many of the holds last that long
};

class FleetProgram {
 public:
  virtual ~FleetProgram() = default;
  FleetProgram(const FleetProgram&) = delete;
  FleetProgram& operator=(const FleetProgram&) = delete;

  void start() { spawn(live()); }
  bool is_idle() const noexcept { return running_ == 0; }
  bool is_alive() const noexcept { return process_.is_alive(); }
  /// Killed: unseen by everybody it takes itself apart.
  void crash();
  virtual void close() = 0;
  Process& process() noexcept { return process_; }

 protected:
  using Limits = core::AcquireFsm::Limits;

  FleetProgram(World& world, Recorder& recorder, FleetState& state, std::string name,
               Process::Clock clock, Server& source, Server& target, const Weather& weather);

  /// All that it does, from its start to its end.
  virtual asio::awaitable<void> live() = 0;
  virtual bool ends() const { return state_.stopping || !process_.is_alive(); }
  /// What cancels it; empty: it cannot be cancelled.
  virtual std::function<void()> acquire(const std::string& lock, Limits limits,
                                        detail::AcquireHandler done) = 0;
  virtual void on_granted(GrantId grant, const std::string& lock, const LockHandle& handle) = 0;

  /// A worker's day.
  asio::awaitable<void> work();
  /// It is not idle before the end of that; `then` is called after it.
  void spawn(asio::awaitable<void> what, std::function<void()> then = {});
  /// As one that knows that store alone, and of no plan.
  static void acquire_in(const std::shared_ptr<core::Store>& store, const std::string& lock,
                         Limits limits, detail::AcquireHandler done);
  static core::Acquisition::Request request_for(const std::string& lock, Limits limits);
  template <class Acquisition>
  static std::function<void()> canceller(const std::shared_ptr<Acquisition>& of) {
    return [weak = std::weak_ptr(of)] {
      if (const auto alive = weak.lock()) alive->cancel();
    };
  }

  World& world_;
  Recorder& recorder_;
  Process process_;
  std::array<Link, 3> links_;
  std::shared_ptr<SimHost> host_;
  std::shared_ptr<core::Store> source_;
  std::shared_ptr<core::Store> target_;

 private:
  struct Outcome {
    error_code ec;
    LockHandle handle;
    GrantId grant = 0;
    std::shared_ptr<bool> told_lost;
  };
  asio::awaitable<void> use(std::string lock);
  OneShot<Outcome> want(const std::string& lock);
  detail::AcquireHandler record_outcome(const std::string& lock, OneShot<Outcome> done);

  FleetState& state_;
  int running_ = 0;
};

}  // namespace dlock::simulation::migration
