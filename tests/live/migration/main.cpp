// SPDX-License-Identifier: Apache-2.0
//
// dlock-fleet: six processes lock twenty names while `dlock migrate` takes them from ZooKeeper to
// Redis, back to ZooKeeper, to a folder and back; there, back, there and for good each time.
// Workers and commands are killed, and stopped past their leases. The soak's judge says what was
// wrong.
//
//   --seed N --runs K            that seed and the K - 1 after it
//   --plant record-lost          must find two holders: exit status 0 if it does
//   --leased SOURCE              with a leased gate, from a source that may forget
//   --leased SOURCE --to STORE   ... to that store; for `redis`, the gate is in ZooKeeper
//   --leased SOURCE --plant wiped-too-early
//                                must find two holders
//
// A line for each run on standard error, a JSON object for each on standard output. Exit status 0
// only without a violation.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <iostream>

#include "tests/live/migration/conductor.hpp"
#include "tests/live/migration/crowd.hpp"
#include "tests/live/migration/workers.hpp"
#include "tests/soak/worker.hpp"

namespace dlock::fleet {
namespace {

std::int64_t ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

/// Without violations there is nothing of it but its figures.
boost::json::object to_json(const FleetOptions& options, const FleetRun& run,
                            const soak::Judgement& judgement) {
  boost::json::array violations;
  for (const auto& one : judgement.violations) violations.emplace_back(one.what);
  boost::json::object stores;
  for (const auto& [store, grants] : grants_by_store(run.records)) stores[store] = grants;
  return {{"seed", options.seed},
          {"acquisitions", judgement.acquisitions},
          {"by_store", std::move(stores)},
          {"renewals_seen", judgement.extensions},
          {"losses_told", judgement.losses},
          {"guarded_writes", judgement.writes},
          {"stale_writes_refused", judgement.refused_writes},
          {"flips_seen", flips_seen(run.records)},
          {"records_written", run.records_written},
          {"commands", run.commands},
          {"commands_killed", run.commands_killed},
          {"commands_stopped", run.commands_stopped},
          {"workers_killed", run.records.deaths.size()},
          {"workers_stopped", run.records.stops.size()},
          {"turned_away", run.turned_away},
          {"longest_wait_ms", ms(longest_wait(run.records))},
          {"bound_ms", terms().progress_bound.count()},
          {"violations", std::move(violations)}};
}

bool two_held(const soak::Judgement& judgement) {
  return std::any_of(judgement.violations.begin(), judgement.violations.end(), [](const auto& one) {
    return one.what.find(" holds it") != std::string::npos;
  });
}

std::string story(const FleetRun& run, const checkers::Violation& violation) {
  const auto from = violation.what.find('\'');
  const auto to = violation.what.find('\'', from + 1);
  if (from == std::string::npos || to == std::string::npos) return {};
  return story_of(run, violation.what.substr(from + 1, to - from - 1), violation.at);
}

/// Whether it went as it should.
bool run_once(const FleetOptions& options) {
  const auto begin = BoottimeClock::now();
  const auto run = run_fleet(options);
  const auto judgement = soak::judge(run.records, terms());
  const auto figures = to_json(options, run, judgement);
  std::cout << boost::json::serialize(figures) << std::endl;
  const bool good = options.is_planted()
                        ? two_held(judgement)
                        : judgement.violations.empty() && judgement.acquisitions > 0;
  std::size_t shown = 0;
  for (const auto& one : judgement.violations) {
    if (!options.is_planted() && ++shown <= 5) {
      std::cerr << fmt::format("violation, {} ms before the end: {}\n{}",
                               ms(run.records.end - one.at), one.what, story(run, one));
    }
  }
  std::cerr << fmt::format(
      "seed {} {} after {} s: {} acquisitions, {} flips seen, {} violations; killed {} workers and "
      "{} commands, stopped {} and {}; longest wait {} ms of {}\n",
      options.seed, good ? "passed" : "FAILED", ms(BoottimeClock::now() - begin) / 1000,
      judgement.acquisitions, flips_seen(run.records), judgement.violations.size(),
      run.records.deaths.size(), run.commands_killed, run.records.stops.size(),
      run.commands_stopped, ms(longest_wait(run.records)), terms().progress_bound.count());
  return good;
}

int run_all(FleetOptions options, unsigned runs) {
  unsigned failed = 0;
  for (unsigned i = 0; i < runs; ++i, ++options.seed) failed += run_once(options) ? 0 : 1;
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dlock::fleet

int main(int argc, char** argv) {
  CLI::App app("Locks that move between real stores while workers and commands die");
  dlock::fleet::FleetOptions options;
  dlock::soak::WorkerOptions worker;
  dlock::fleet::CrowdOptions crowd;
  unsigned runs = 1;
  std::string plant;
  std::int64_t long_hold = 0;
  options.program = std::filesystem::read_symlink("/proc/self/exe").string();
  options.dlock = DLOCK_BINARY;
  app.add_option("--seed", options.seed, "Of the choice of faults");
  app.add_option("--runs", runs, "How many, each with the next seed");
  app.add_option("--first-leg", options.first_leg,
                 "0: zk to redis, 1: back, 2: zk to a folder, 3: back")
      ->check(CLI::Range(0, 3));
  app.add_option("--last-leg", options.last_leg, "Where it stops")->check(CLI::Range(0, 3));
  app.add_option("--dlock", options.dlock, "The command under test");
  app.add_option("--plant", plant, "What must be found")
      ->check(CLI::IsMember({"record-lost", "wiped-too-early"}));
  app.add_option("--leased", options.leased_source, "With a leased gate, from this store")
      ->check(CLI::IsMember({"memcached", "redis"}));
  app.add_option("--to", options.leased_target, "The target, with --leased")
      ->check(CLI::IsMember({"zookeeper", "durable", "redis"}))
      ->needs("--leased");
  const auto* is_worker =
      app.add_option("--worker", worker.number, "Be a worker (the program starts these)");
  app.add_option("--config", worker.config, "With --worker or --crowd");
  app.add_option("--folder", worker.folder)->needs("--worker");
  app.add_option("--long-hold", long_hold)->needs("--worker");
  app.add_flag("--make-names", worker.makes_names)->needs("--worker");
  const auto* is_crowd = app.add_option("--crowd", crowd.programs,
                                        "Be so many programs (leased_crowd_test starts these)");
  app.add_option("--first", crowd.first, "The number of the first one")->needs("--crowd");
  app.add_option("--board", crowd.board, "The file where they meet")->needs("--crowd");
  CLI11_PARSE(app, argc, argv);
  try {
    if (*is_worker) {
      worker.seed = options.seed;
      worker.names = dlock::fleet::kNames;
      worker.lease = std::chrono::milliseconds(long_hold);
      return dlock::soak::work(worker);
    }
    if (*is_crowd) {
      crowd.config = worker.config;
      return dlock::fleet::crowd(crowd);
    }
    options.plant_lost_record = plant == "record-lost";
    options.plant_early_wipe = plant == "wiped-too-early";
    if (options.plant_early_wipe != (!plant.empty() && !options.leased_source.empty())) {
      throw std::invalid_argument("wiped-too-early needs --leased; record-lost excludes it");
    }
    return dlock::fleet::run_all(options, runs);
  } catch (const std::exception& error) {
    std::cerr << "dlock-fleet: " << error.what() << '\n';
    return 2;
  }
}
