// SPDX-License-Identifier: Apache-2.0
//
// LeasedProgram: one simulated process of a fleet that a plan with a leased gate moves: a worker
// with the plan's route, a worker that knows one store alone, or an operator's command.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "migration/leased/leased_gate.hpp"
#include "tests/simulation/migration/fleet_program.hpp"
#include "tests/simulation/migration/leased_judge.hpp"

namespace dlock::core::migration {
class GateReader;
class LeasedCoordinator;
class LeasedHold;
}  // namespace dlock::core::migration

namespace dlock::simulation::migration {

/// The stores of a run; the gate is in the target or in a third one.
struct Places {
  Server& source;
  Server& target;
  Server& gate;
};

/// What the programs of a run share.
struct LeasedFleet : FleetState {
  bool legacy_gone = true;                              ///< as the operator believes
  bool started = false;                                 ///< the plan is published
  bool resting = false;                                 ///< no commands
  int commands = 0;                                     ///< in progress
  std::optional<core::migration::LeasedState> restore;  ///< the gate is lost
  LeasedFacts facts;
};

class LeasedProgram final : public FleetProgram {
 public:
  enum class Role { worker, legacy, target_only, operators };

  LeasedProgram(World& world, Recorder& recorder, LeasedFleet& fleet, Role role, std::string name,
                Process::Clock clock, const Places& places, const Weather& weather);
  ~LeasedProgram() override;

  /// It ends after its present work; is_over() then.
  void stop() noexcept { is_stopping_ = true; }
  bool is_stopping() const noexcept { return is_stopping_; }
  /// Its stores are closed, or it was killed.
  bool is_over() const noexcept { return closed_ || !process_.is_alive(); }
  /// True once: another takes its place.
  bool replace() noexcept { return !std::exchange(replaced_, true); }
  void close() override;
  Role role() const noexcept { return role_; }
  /// Cut off from the source, the target or the third store, for that time.
  void cut(std::size_t which, Duration time);
  void mend();
  /// Calls it for each of its holds that it believes in now.
  void each_hold(const std::function<void(GrantId, bool in_source, bool in_target)>& call);

 private:
  struct Held;

  asio::awaitable<void> live() override;
  bool ends() const override { return FleetProgram::ends() || is_stopping_; }
  std::function<void()> acquire(const std::string& lock, Limits limits,
                                detail::AcquireHandler done) override;
  void on_granted(GrantId grant, const std::string& lock, const LockHandle& handle) override;
  asio::awaitable<void> operate();
  asio::awaitable<void> command();
  asio::awaitable<void> end();

  LeasedFleet& fleet_;
  const Role role_;
  std::shared_ptr<core::Store> gate_;
  std::shared_ptr<core::migration::GateReader> reader_;
  std::shared_ptr<core::migration::LeasedCoordinator> coordinator_;
  std::map<GrantId, std::weak_ptr<core::Hold>> holds_;
  bool is_stopping_ = false;
  bool closed_ = false;
  bool replaced_ = false;
};

}  // namespace dlock::simulation::migration
