// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/conductor.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>
#include <stdexcept>

#include "dlock/lock_manager.hpp"
#include "tests/live/migration/fleet_at_work.hpp"
#include "tests/soak/worker.hpp"

namespace dlock::fleet {
namespace {

namespace json = boost::json;

class Conductor : private FleetAtWork {
 public:
  explicit Conductor(const FleetOptions& options) : FleetAtWork(options) {}

  FleetRun go() {
    try {
      if (options_.plant_lost_record) {
        lose_records();
      } else {
        move_through_all();
      }
    } catch (const std::exception& error) {
      complain(error.what());
      workers_.calm();
    }
    finish();
    return std::move(run_);
  }

 private:
  void move_through_all() {
    const auto& legs = Stores::legs();
    for (std::size_t i = 0; i < kWorkers; ++i) {
      workers_.start(i, stores_.config(legs.at(options_.first_leg)), true);
    }
    work_for_a_while();
    for (std::size_t i = options_.first_leg; i <= options_.last_leg; ++i) move(i);
    workers_.calm();
    commands_.wait_for_late_ones();
    work_for_a_while();
  }

  /// What is written after a leg is finished: the next plan's route, or the last store alone.
  std::filesystem::path config_after(std::size_t leg) const {
    const auto& legs = Stores::legs();
    return leg + 1 < legs.size() ? stores_.config(legs[leg + 1]) : stores_.last_config();
  }

  void move(std::size_t index) {
    const auto& leg = Stores::legs()[index];
    commands_.use(stores_.config(leg), leg.plan);
    commands_.reach("plan", {});
    commands_.reach("start", {"--yes"});  // also with the laggard, which has the last plan's route
    // One has the configuration of later too early: it must not lock anything before its time.
    const bool early = chance(dice_, 0.5);
    if (early) workers_.start(kWorkers - 1, config_after(index), false);
    if (!laggard_config_.empty()) workers_.turn(kLaggard, false);
    commands_.reach("advance", {"--name", soak::lock_name(0), "--wait", "3s"});
    advance();
    replace_laggard();
    work_for_a_while();
    commands_.reach("rollback", {"--all", "--wait", "3s"});
    work_for_a_while();
    advance();
    work_for_a_while();
    expect_no_alarm();
    commands_.reach("finish", {"--all", "--wait", "3s"});
    if (early) workers_.turn(kWorkers - 1, true);
    // Program by program, in any order; one is forgotten until it is too late.
    const bool late = chance(dice_, 0.5);
    for (std::size_t i = 0; i + (early ? 1 : 0) < kWorkers; ++i) {
      if (late && i == kLaggard) {
        laggard_config_ = config_after(index);
      } else {
        workers_.start(i, config_after(index), true);
      }
      work_for(between(dice_, 0ms, 100ms));
    }
  }

  void advance() { commands_.reach("advance", {"--all", "--wait", "3s"}); }

  void replace_laggard() {
    if (laggard_config_.empty()) return;
    work_for(200ms);
    workers_.start(kLaggard, std::exchange(laggard_config_, {}), true);
  }

  /// When no command is about, all are moved and nothing is alarming.
  void expect_no_alarm() {
    commands_.wait_for_late_ones();
    // One of those may have been the last to have its way.
    commands_.reach("advance", {"--all", "--wait", "3s"});
    commands_.wait_for_late_ones();
    const auto status = commands_.run("status", {});
    json::error_code error;
    const auto value = json::parse(status.out, error);
    if (error || !status.status.success()) return complain("status: " + status.out + status.err);
    for (const auto& alarm : value.at("alarms").as_array()) {
      complain("status: " + json::serialize(alarm));
    }
    for (const auto& lock : value.at("locks").as_array()) {
      // One that is being made at this moment has no record yet.
      const bool calm = lock.at("alarms").as_array().empty() && lock.at("state") != "CLOSING";
      if (!calm) complain("status: " + json::serialize(lock));
    }
  }

  void lose_records() {
    const auto& leg = Stores::legs()[1];
    for (std::size_t i = 0; i < kWorkers; ++i) workers_.start(i, stores_.config(leg), true);
    work_for_a_while();
    commands_.use(stores_.config(leg), leg.plan);
    commands_.reach("start", {"--yes"});
    advance();
    for (int i = 0; i < 10; ++i) {
      work_for(200ms);
      stores_.forget_in_redis(all_names(), leg.plan);
    }
    workers_.calm();
  }

  void finish() {
    collect();
    if (!options_.plant_lost_record) expect_nothing_left();
  }

  /// Nobody has anything, wherever they have been. What was locked while its plan went on is sealed
  /// in the stores that it has left; where all are at home now, whoever comes opens what an earlier
  /// plan has left closed.
  void expect_nothing_left() {
    std::vector<std::string> stores;
    for (std::size_t i = options_.first_leg; i <= options_.last_leg; ++i) {
      stores.push_back(Stores::legs()[i].from);
    }
    stores.push_back(Stores::legs()[options_.last_leg].to);
    for (const auto& store : stores) {
      auto options = OpenOptions::built_in();
      options.log = [](LogLevel, std::string_view) {};
      auto locks = LockManager::open(stores_.url(store), std::move(options));
      const auto latest = testkit::within(2 * kLease + kBusy);
      for (const auto& name : names_seen()) {
        LockStatus status;
        // A waiter of Redis that died is not taken off its list before somebody comes by.
        const bool free = testkit::eventually(latest, [&] {
          status = locks.status(name);
          const bool queue_empty = status.waiting.empty() || store == "redis";
          return !status.held && queue_empty;
        });
        if (free) continue;
        complain(fmt::format("when all have gone, {} in {} is {}, {}, {} wait", name, store,
                             status.held ? "held" : "free", status.sealed ? "sealed" : "open",
                             status.waiting.size()));
      }
    }
  }

  static constexpr std::size_t kLaggard = 2;

  Stores stores_;
  std::filesystem::path laggard_config_;  ///< what the laggard has not yet; empty: there is none
};

}  // namespace

FleetRun run_fleet(const FleetOptions& options) {
  return options.leased_source.empty() ? Conductor(options).go() : run_leased_fleet(options);
}

soak::Terms terms() {
  soak::Terms terms;
  terms.lease = kLease;
  terms.progress_bound = kProgressBound;
  return terms;
}

}  // namespace dlock::fleet
