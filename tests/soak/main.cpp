// SPDX-License-Identifier: Apache-2.0
//
// dlock-soak: several processes lock a handful of names on a real store while something breaks
// every five seconds. What they were told is judged by the checkers of the simulation.
//
//   dlock-soak --store zookeeper|redis|memcached|local --minutes N --seed S
//
// Progress and a closing line on standard error, one JSON object on standard output. Exit status 0
// only without a violation, with everybody getting on after every heal, and with losses told in
// time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <filesystem>
#include <iostream>

#include "tests/soak/conductor.hpp"
#include "tests/soak/worker.hpp"

namespace dlock::soak {
namespace {

using namespace std::chrono_literals;

/// A loss is told by the local deadline; this much a timer may be late.
constexpr auto kLateBy = 10ms;

double ms(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

boost::json::object counts(const std::map<std::string, std::size_t>& all) {
  boost::json::object object;
  for (const auto& [name, count] : all) object[name] = count;
  return object;
}

boost::json::object to_json(const SoakOptions& options, const Terms& terms,
                            const Judgement& judgement, bool passed) {
  boost::json::object losses{{"told", judgement.losses}, {"timed", judgement.lateness.size()}};
  if (!judgement.lateness.empty()) {
    losses["p50_ms"] = ms(quantile(judgement.lateness, 0.5));
    losses["p999_ms"] = ms(quantile(judgement.lateness, 0.999));
    losses["worst_ms"] = ms(judgement.lateness.back());
    losses["without_the_machines_p999_ms"] = ms(quantile(judgement.own_lateness, 0.999));
  }
  boost::json::array violations;
  for (const auto& one : judgement.violations) violations.emplace_back(one.what);
  return {{"store", options.store},
          {"guarantee", terms.exclusive ? "exclusive" : "best_effort"},
          {"seconds", options.duration.count()},
          {"seed", options.seed},
          {"acquisitions", judgement.acquisitions},
          {"renewals_seen", judgement.extensions},
          {"guarded_writes", judgement.writes},
          {"stale_writes_refused", judgement.refused_writes},
          {"faults", counts(judgement.faults)},
          {"excepted_overlaps", counts(judgement.excepted)},
          {"losses", std::move(losses)},
          {"longest_heal_to_progress_ms", ms(judgement.longest_progress)},
          {"progress_bound_ms", terms.progress_bound.count()},
          {"violations", std::move(violations)},
          {"passed", passed}};
}

int soak(const SoakOptions& options) {
  const auto store = make_store(options.store, kWorkers);
  const auto terms = terms_of(*store);
  const auto judgement = judge(run_soak(options, *store, terms), terms);
  std::size_t shown = 0;
  for (const auto& one : judgement.violations) {
    if (++shown <= 20) std::cerr << "violation: " << one.what << '\n';
  }
  std::size_t faults = 0;
  for (const auto& [kind, count] : judgement.faults) faults += count;
  std::size_t excepted = 0;
  for (const auto& [kind, count] : judgement.excepted) excepted += count;
  const bool in_time = told_in_time(judgement.own_lateness, kLateBy);
  const bool passed = judgement.violations.empty() && in_time && judgement.acquisitions > 0;
  std::cerr << fmt::format(
      "{} {}: {} acquisitions checked, {} faults, {} violations, {} excepted by the store's word; "
      "{} losses, told after the deadline p50 {:.1f}, p99.9 {:.1f}, worst {:.1f} ms (p99.9 {:.1f} "
      "without what the machine was late by); longest from "
      "heal to progress {:.0f} ms of {}\n",
      passed ? "passed" : "FAILED", options.store, judgement.acquisitions, faults,
      judgement.violations.size(), excepted, judgement.losses,
      ms(quantile(judgement.lateness, 0.5)), ms(quantile(judgement.lateness, 0.999)),
      ms(quantile(judgement.lateness, 1)), ms(quantile(judgement.own_lateness, 0.999)),
      ms(judgement.longest_progress), terms.progress_bound.count());
  std::cout << boost::json::serialize(to_json(options, terms, judgement, passed)) << '\n';
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace dlock::soak

int main(int argc, char** argv) {
  CLI::App app("Locks on a real store while something breaks every five seconds");
  dlock::soak::SoakOptions options;
  dlock::soak::WorkerOptions worker;
  double minutes = 1;
  std::int64_t lease = 0;
  options.program = std::filesystem::read_symlink("/proc/self/exe").string();
  app.add_option("--store", options.store, "Which store to start and strike")
      ->check(CLI::IsMember({"zookeeper", "redis", "memcached", "local"}));
  app.add_option("--minutes", minutes, "How long")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "Of the choice of faults");
  app.add_option("--only", options.only, "This kind of fault, e.g. \"link silent\"");
  app.add_option("--names", options.names, "How many locks")->check(CLI::Range(1, 100));
  const auto* is_worker =
      app.add_option("--worker", worker.number, "Be a worker (the program starts these)");
  app.add_option("--url", worker.url)->needs("--worker");
  app.add_option("--folder", worker.folder)->needs("--worker");
  app.add_option("--lease", lease)->needs("--worker");
  CLI11_PARSE(app, argc, argv);
  try {
    if (*is_worker) {
      worker.seed = options.seed;
      worker.names = options.names;
      worker.lease = std::chrono::milliseconds(lease);
      return dlock::soak::work(worker);
    }
    if (options.store.empty()) {
      std::cerr << "dlock-soak: --store is missing\n";
      return 64;
    }
    options.duration = std::chrono::seconds(static_cast<std::int64_t>(minutes * 60));
    return dlock::soak::soak(options);
  } catch (const std::exception& error) {
    std::cerr << "dlock-soak: " << error.what() << '\n';
    return 2;
  }
}
