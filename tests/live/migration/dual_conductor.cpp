// SPDX-License-Identifier: Apache-2.0
//
// A fleet that is moved in mode dual, as an operator does it: a step of the window, then all
// programs restarted one by one with the next phase, and so on; once a step back. Meanwhile workers
// and commands are killed and stopped at random, and in phase 1 the source forgets everything, time
// and again.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <stdexcept>

#include "dlock/lock_manager.hpp"
#include "tests/live/migration/dual_stores.hpp"
#include "tests/live/migration/fleet_at_work.hpp"
#include "tests/soak/worker.hpp"

namespace dlock::fleet {
namespace {

namespace json = boost::json;

/// Of a program with the plan. What is stopped for longest outlives it.
constexpr std::chrono::milliseconds kRegistration = 2000ms;
/// Longer than that.
const std::vector<std::string> kWait{"--wait", "10s"};
constexpr int kWipes = 4;

std::vector<std::string> with_wait(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), kWait.begin(), kWait.end());
  return arguments;
}

class DualConductor : private FleetAtWork {
 public:
  explicit DualConductor(const FleetOptions& options)
      : FleetAtWork(options), stores_(options.dual_source) {}

  FleetRun go() {
    try {
      commands_.use(stores_.config(1), kDualPlan);
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
      complain(fmt::format("{}; ZooKeeper says:\n{}", error.what(), stores_.zookeeper_log()));
    }
    return std::move(run_);
  }

 private:
  /// Programs as they were, the plan, and the same programs with the plan's route: phase 0.
  void begin() {
    for (std::size_t i = 0; i < kWorkers; ++i) workers_.start(i, stores_.legacy_config(), true);
    work_for_a_while();
    auto arguments = all_names();
    arguments.emplace_back("--registration");
    arguments.push_back(fmt::format("{}ms", kRegistration.count()));
    commands_.reach("plan", arguments);
    commands_.reach("start", arguments);
    restart_all(stores_.config(0));
    work_for_a_while();
    reach_window("advance", 0, 1);
  }

  void move() {
    restart_all(stores_.config(1));
    work_for_a_while();
    reach_window("advance", 1, 1);
    expect_closed(0);
    for (int i = 0; i < kWipes; ++i) {
      wipe(chance(dice_, 0.5));
      work_for_a_while();
    }
    reach_window("advance", 1, 2);
    restart_all(stores_.config(2));
    work_for_a_while();
    if (chance(dice_, 0.5)) {
      // Something is wrong with it, and they go back, and come again.
      restart_all(stores_.config(1));
      reach_window("rollback", 1, 1);
      expect_closed(2);
      work_for_a_while();
      reach_window("advance", 1, 2);
      restart_all(stores_.config(2));
    }
    reach_window("advance", 2, 2);
    wipe(true);
    work_for_a_while();
    commands_.reach("finish", with_wait({}));
    restart_all(stores_.home_config());
    work_for_a_while();
    workers_.calm();
    commands_.wait_for_late_ones();
    work_for_a_while();
  }

  /// Who knows the source alone and who locks both share nothing but the source.
  void wipe_too_early() {
    for (std::size_t i = 0; i < kWorkers; i += 2) {
      workers_.start(i, stores_.config(1), true);
    }
    work_for_a_while();
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

  void wipe(bool by_restart) {
    const auto from = BoottimeClock::now();
    stores_.wipe(by_restart);
    run_.records.struck.push_back({by_restart ? "restart" : "flush", from, BoottimeClock::now()});
    run_.remarks.push_back(
        {from, by_restart ? "the source is restarted" : "the source is flushed"});
  }

  void reach_window(const std::string& verb, int lo, int hi) {
    auto arguments = with_wait({});
    const bool opens_an_end =
        (verb == "advance" && hi == 2 && lo == 1) || (verb == "rollback" && lo == 0 && hi == 1);
    if (opens_an_end) arguments.emplace_back("--legacy-gone");
    commands_.reach(verb, arguments, [&] { return window() == std::pair(lo, hi); });
    commands_.wait_for_late_ones();
    if (window() != std::pair(lo, hi)) {
      throw std::runtime_error(fmt::format("the window is {},{} and not {},{}", window().first,
                                           window().second, lo, hi));
    }
  }

  std::pair<int, int> window() {
    const auto status = commands_.run("status", {});
    json::error_code error;
    const auto value = json::parse(status.out, error);
    if (error || !status.status.success()) {
      throw std::runtime_error("status: " + status.out + status.err);
    }
    const auto& window = value.at("window").as_object();
    return {window.at("lo").to_number<int>(), window.at("hi").to_number<int>()};
  }

  /// One who comes with a phase that is closed is turned away, until it comes with another.
  void expect_closed(int phase) {
    const auto before = workers_.turned_away();
    const auto latest = BoottimeClock::now() + kProgressBound;
    workers_.start(0, stores_.config(phase), false);
    while (workers_.turned_away() == before) {
      if (BoottimeClock::now() > latest) {
        complain(fmt::format("who comes with phase {} is not turned away", phase));
        break;
      }
      tick();
    }
    workers_.start(0, stores_.config(1), true);
  }

  void expect_nothing_left() {
    for (const auto* store : {"cache", "zk"}) {
      auto options = OpenOptions::built_in();
      options.log = [](LogLevel, std::string_view) {};
      auto locks = LockManager::open(stores_.url(store), std::move(options));
      const auto latest = testkit::within(2 * kLease + kBusy);
      for (const auto& name : all_names()) {
        const bool free = testkit::eventually(latest, [&] { return !locks.status(name).held; });
        if (!free) complain(fmt::format("when all have gone, {} in {} is held", name, store));
      }
    }
  }

  DualStores stores_;
};

}  // namespace

FleetRun run_dual_fleet(const FleetOptions& options) { return DualConductor(options).go(); }

}  // namespace dlock::fleet
