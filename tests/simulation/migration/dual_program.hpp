// SPDX-License-Identifier: Apache-2.0
//
// DualProgram: one simulated process of a fleet that a plan in mode dual moves: a worker of a
// phase, a worker that knows one store alone and of no plan, or an operator's command.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "migration/move/steps.hpp"
#include "migration/plan.hpp"
#include "tests/simulation/migration/dual_judge.hpp"
#include "tests/simulation/migration/wire.hpp"
#include "tests/simulation/recorder.hpp"

namespace dlock::simulation::migration {

using core::migration::Goal;

/// Where the locks of a run are, and who is admitted; `window` is the target or a third one.
struct Places {
  Server& source;
  Server& target;
  Server& window;
};

/// What an operator of a second plan wants.
enum class Order { nothing, start, withdraw };

/// What the programs of a run share.
struct DualFleet {
  core::migration::Plan plan;
  Goal goal = Goal::rollback;
  bool legacy_gone = true;  ///< as the operator believes, who ended them
  bool started = false;     ///< the plan is published
  bool finished_started_again = false;
  bool resting = false;  ///< no commands
  bool stopping = false;
  Duration longest_hold = milliseconds(300);
  Duration longest_think = milliseconds(300);
  Duration long_work = Duration(kLease) * 2;
  double long_works = 0.1;  ///< how many of the holds last that long
  int commands = 0;         ///< under way
  /// The window is lost, and was that.
  std::optional<std::pair<int, int>> restore;
  std::shared_ptr<DualFacts> facts = std::make_shared<DualFacts>();

  // Of a second plan.
  bool is_rival = false;
  bool leads_back = false;
  Order order = Order::nothing;
  std::uint64_t refused = 0;  ///< starts
};

class DualProgram {
 public:
  enum class Role { worker, operators };
  struct Part {
    Role role = Role::worker;
    Sort sort = Sort::source;
  };

  DualProgram(World& world, Recorder& recorder, DualFleet& fleet, Part part, std::string name,
              Process::Clock clock, const Places& places, const Weather& weather);
  ~DualProgram();

  void start();
  /// It finishes what it is at, and ends; is_over() then.
  void stop();
  bool is_stopping() const noexcept { return stopped_at_.has_value(); }
  TimePoint stopped_at() const { return *stopped_at_; }
  /// It is not restarted before.
  void lag_until(TimePoint when) noexcept { lags_until_ = when; }
  TimePoint lags_until() const noexcept { return lags_until_; }
  bool is_idle() const noexcept { return running_ == 0; }
  /// Its stores are closed, or it was killed.
  bool is_over() const noexcept { return closed_ || !process_.is_alive(); }
  /// True once: another takes its place.
  bool replace() noexcept { return !std::exchange(replaced_, true); }
  /// Killed: unseen by everybody it takes itself apart.
  void crash();
  void close();
  Process& process() noexcept { return process_; }
  const Part& part() const noexcept { return part_; }
  DualFleet& fleet() const noexcept { return fleet_; }
  bool is_worker() const noexcept { return part_.role == Role::worker; }
  /// Cut off from the source, the target, the third store; for that long.
  void cut(std::size_t which, Duration time);
  void mend();

 private:
  struct Outcome {
    error_code ec;
    LockHandle handle;
    GrantId grant = 0;
    std::shared_ptr<bool> told_lost;
  };
  struct Plans;  ///< what of it takes part in the plan

  asio::awaitable<void> work();
  asio::awaitable<void> operate();
  asio::awaitable<void> command();
  asio::awaitable<void> command_of_rival();
  asio::awaitable<void> use(std::string lock);
  asio::awaitable<void> end();
  OneShot<Outcome> want(const std::string& lock);
  detail::AcquireHandler record_outcome(const std::string& lock, OneShot<Outcome> done);
  core::Acquisition::Request request_for(const std::string& lock, const core::Store& store);
  core::AcquireFsm::Limits random_limits(const core::Store& store);
  Duration hold_time();
  /// As the first plan calls it.
  Sort seen_sort() const noexcept;
  bool ends() const { return fleet_.stopping || stopped_at_ || !process_.is_alive(); }

  World& world_;
  Recorder& recorder_;
  DualFleet& fleet_;
  const Part part_;
  Process process_;
  std::array<Link, 3> links_;
  std::shared_ptr<SimHost> host_;
  std::shared_ptr<core::Store> source_;
  std::shared_ptr<core::Store> target_;
  std::shared_ptr<core::Store> window_;
  std::unique_ptr<Plans> plans_;
  std::optional<TimePoint> stopped_at_;
  TimePoint lags_until_{};
  int running_ = 0;
  bool closed_ = false;
  bool replaced_ = false;
};

}  // namespace dlock::simulation::migration
