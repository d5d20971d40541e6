// SPDX-License-Identifier: Apache-2.0
//
// A fleet that is moved with a leased gate, as an operator does it: start, the route for every
// program, forward, back, forward, finish. Meanwhile workers and commands are killed and stopped at
// random. Where no lock is in the source alone, the source forgets everything.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <stdexcept>

#include "dlock/lock_manager.hpp"
#include "tests/live/migration/fleet_at_work.hpp"
#include "tests/live/migration/leased_stores.hpp"

namespace dlock::fleet {
namespace {

namespace json = boost::json;

/// Stopped workers are stopped for longer.
constexpr std::chrono::milliseconds kGateLease = 1000ms;
/// By then, no reading counts that is older than a turn.
constexpr std::chrono::milliseconds kReadByAll = kGateLease + kGateLease / 10;
/// Longer than a turn waits.
const std::vector<std::string> kWait{"--wait", "10s"};
const std::vector<std::string> kAtOnce{"--wait", "0"};

class LeasedConductor : private FleetAtWork {
 public:
  explicit LeasedConductor(const FleetOptions& options)
      : FleetAtWork(options), stores_(options.leased_source, options.leased_target) {}

  FleetRun go() {
    try {
      commands_.use(stores_.operators(), kLeasedPlan);
      begin();
      if (options_.plant_early_wipe) {
        wipe_too_early();
      } else {
        move();
      }
    } catch (const std::exception& error) {
      complain(error.what());
    }
    collect();
    try {
      if (!options_.is_planted()) expect_nothing_left();
    } catch (const std::exception& error) {
      complain(fmt::format("{}; the servers' logs:\n{}", error.what(), stores_.logs()));
    }
    return std::move(run_);
  }

 private:
  /// Half of the programs get the route, and meet the others in the source.
  void begin() {
    for (std::size_t i = 0; i < kWorkers; ++i) workers_.start(i, stores_.legacy(), true);
    work_for_a_while();
    const std::vector<std::string> lease{"--gate-lease", fmt::format("{}ms", kGateLease.count())};
    commands_.reach("plan", lease);
    commands_.reach("start", lease);
    for (std::size_t i = 0; i < kWorkers; i += 2) workers_.start(i, stores_.route(), true);
    work_for_a_while();
    reach_state("advance", kAtOnce, "S_THEN_T");
    work_for_a_while();
  }

  void move() {
    restart_all(stores_.route());
    forget_in_both();
    reach_target_alone();
    forget(false);
    reach_state("rollback", kAtOnce, "T_THEN_S");
    forget(chance(dice_, 0.5));
    reach_state("rollback", kWait, "S_ALONE");
    work_for_a_while();
    // The source's tokens are ahead of the clock now: it would repeat them if it forgot them.
    reach_state("advance", kAtOnce, "S_THEN_T");
    work_for_a_while();
    reach_target_alone();
    expect_turned_away();
    reach_state("finish", kWait, "FINAL");
    forget(true);
    restart_all(stores_.home());
    work_for_a_while();
    workers_.calm();
    commands_.wait_for_late_ones();
    work_for_a_while();
  }

  /// Programs that know the source alone share nothing else with those that have the route.
  void wipe_too_early() {
    for (int i = 0; i < 12; ++i) {
      work_for(250ms);
      stores_.wipe(false);
    }
  }

  void restart_all(const std::filesystem::path& config) {
    for (std::size_t i = 0; i < kWorkers; ++i) {
      workers_.start(i, config, true);
      work_for(between(dice_, 0ms, 100ms));
    }
  }

  /// After the turn to "both", once no hold in the source alone is relied on.
  void forget_in_both() {
    work_for(kReadByAll);
    forget(true);
    forget(false);
  }

  void forget(bool by_restart) {
    const auto from = BoottimeClock::now();
    stores_.wipe(by_restart);
    run_.records.struck.push_back({by_restart ? "restart" : "flush", from, BoottimeClock::now()});
    run_.remarks.push_back(
        {from, by_restart ? "the source is restarted" : "the source is flushed"});
    work_for_a_while();
  }

  void reach_target_alone() {
    reach_state("advance", {"--legacy-gone", kWait[0], kWait[1]}, "T_ALONE");
    work_for_a_while();
  }

  void reach_state(const std::string& verb, const std::vector<std::string>& arguments,
                   const std::string& state) {
    constexpr int kMostTries = 5;
    for (int i = 0; i < kMostTries; ++i) {
      commands_.reach(verb, arguments, [&] { return gate_state() == state; });
      // A command that was stopped turns the gate when it continues.
      commands_.wait_for_late_ones();
      if (gate_state() == state) return;
    }
    throw std::runtime_error(fmt::format("the gate is {} and not {}", gate_state(), state));
  }

  std::string gate_state() {
    const auto status = commands_.run("status", {});
    json::error_code error;
    const auto value = json::parse(status.out, error);
    if (error || !status.status.success()) {
      throw std::runtime_error("status: " + status.out + status.err);
    }
    return std::string(value.at("gate").at("state").as_string());
  }

  /// A program that knows the target alone before `finish` is refused until it has the route.
  void expect_turned_away() {
    const auto before = workers_.turned_away();
    const auto latest = BoottimeClock::now() + kProgressBound;
    workers_.start(0, stores_.home(), false);
    while (workers_.turned_away() == before) {
      if (BoottimeClock::now() > latest) {
        complain("a program that knows the target alone is not refused before finish");
        break;
      }
      tick();
    }
    workers_.start(0, stores_.route(), true);
  }

  void expect_nothing_left() {
    for (const auto* store : {"cache", "home"}) {
      auto options = OpenOptions::built_in();
      options.log = [](LogLevel, std::string_view) {};
      auto locks = LockManager::open(stores_.url(store), std::move(options));
      const auto latest = testkit::within(2 * kLease + kBusy);
      for (const auto& name : all_names()) {
        const bool free = testkit::eventually(latest, [&] { return !locks.status(name).held; });
        if (!free) complain(fmt::format("after the end of all, {} in {} is held", name, store));
      }
    }
  }

  LeasedStores stores_;
};

}  // namespace

FleetRun run_leased_fleet(const FleetOptions& options) { return LeasedConductor(options).go(); }

}  // namespace dlock::fleet
