// SPDX-License-Identifier: Apache-2.0
//
// DualProgram: one simulated process of a fleet that a plan in mode dual moves: a worker of a
// phase, a worker that knows one store alone and of no plan, or an operator's command.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/simulation/migration/dual_judge.hpp"
#include "tests/simulation/migration/fleet_program.hpp"

namespace dlock::simulation::migration {

/// Where the locks of a run are, and who is admitted; `window` is the target or a third one.
struct Places {
  Server& source;
  Server& target;
  Server& window;
};

/// What an operator of a second plan wants.
enum class Order { nothing, start, withdraw };

/// What the programs of a run share.
struct DualFleet : FleetState {
  bool legacy_gone = true;  ///< as the operator believes, who ended them
  bool started = false;     ///< the plan is published
  bool finished_started_again = false;
  std::function<bool()> is_finished;  ///< as the window stands now
  bool resting = false;               ///< no commands
  int commands = 0;                   ///< under way
  /// The window is lost, and was that.
  std::optional<std::pair<int, int>> restore;
  std::shared_ptr<DualFacts> facts = std::make_shared<DualFacts>();

  // Of a second plan.
  bool is_rival = false;
  bool leads_back = false;
  Order order = Order::nothing;
  std::uint64_t refused = 0;  ///< starts
};

class DualProgram final : public FleetProgram {
 public:
  enum class Role { worker, operators };
  struct Part {
    Role role = Role::worker;
    Sort sort = Sort::source;
  };

  DualProgram(World& world, Recorder& recorder, DualFleet& fleet, Part part, std::string name,
              Process::Clock clock, const Places& places, const Weather& weather);
  ~DualProgram() override;

  /// It finishes what it is at, and ends; is_over() then.
  void stop();
  bool is_stopping() const noexcept { return stopped_at_.has_value(); }
  TimePoint stopped_at() const { return *stopped_at_; }
  /// It is not restarted before.
  void lag_until(TimePoint when) noexcept { lags_until_ = when; }
  TimePoint lags_until() const noexcept { return lags_until_; }
  /// Its stores are closed, or it was killed.
  bool is_over() const noexcept { return closed_ || !process_.is_alive(); }
  /// True once: another takes its place.
  bool replace() noexcept { return !std::exchange(replaced_, true); }
  void close() override;
  const Part& part() const noexcept { return part_; }
  DualFleet& fleet() const noexcept { return fleet_; }
  bool is_worker() const noexcept { return part_.role == Role::worker; }
  /// Cut off from the source, the target, the third store; for that long.
  void cut(std::size_t which, Duration time);
  void mend();

 private:
  struct Plans;  ///< what of it takes part in the plan

  asio::awaitable<void> live() override;
  bool ends() const override { return FleetProgram::ends() || stopped_at_; }
  std::function<void()> acquire(const std::string& lock, Limits limits,
                                detail::AcquireHandler done) override;
  void on_granted(GrantId grant, const std::string& lock, const LockHandle& handle) override;
  asio::awaitable<void> work_until_stopped();
  asio::awaitable<void> operate();
  asio::awaitable<void> command();
  asio::awaitable<void> command_of_rival();
  asio::awaitable<void> end();
  /// As the first plan calls it.
  Sort seen_sort() const noexcept;

  DualFleet& fleet_;
  const Part part_;
  std::shared_ptr<core::Store> window_;
  std::unique_ptr<Plans> plans_;
  std::optional<TimePoint> stopped_at_;
  TimePoint lags_until_{};
  bool closed_ = false;
  bool replaced_ = false;
};

}  // namespace dlock::simulation::migration
