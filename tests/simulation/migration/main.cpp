// SPDX-License-Identifier: Apache-2.0
//
// dlock-sim-migration: seeded runs of a fleet that is moved; the hunt for planted defects.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "core/planted.hpp"
#include "tests/simulation/migration/defects.hpp"
#include "tests/simulation/migration/fleet.hpp"

namespace {

using dlock::simulation::migration::FleetResult;
using dlock::simulation::migration::run_fleet;

void print(std::uint64_t seed, const FleetResult& result) {
  fmt::print("seed {}: {} violations; replay: dlock-sim-migration --seed {} --trace\n", seed,
             result.violations.size(), seed);
  for (const auto& violation : result.violations) fmt::print("  {}\n", violation.what);
}

int run_seeds(std::uint64_t first, std::uint64_t count) {
  FleetResult all;
  std::uint64_t bad = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const auto result = run_fleet(seed);
    all.grants_in_source += result.grants_in_source;
    all.grants_in_target += result.grants_in_target;
    all.grants_of_target_only += result.grants_of_target_only;
    all.flips += result.flips;
    all.crashes += result.crashes;
    if (result.violations.empty()) continue;
    ++bad;
    print(seed, result);
    if (bad >= 5) break;
  }
  fmt::print(
      "{} seeds: {} grants in S, {} in T ({} of clients that know T alone), {} flips, {} "
      "kills, {} bad\n",
      count, all.grants_in_source, all.grants_in_target, all.grants_of_target_only, all.flips,
      all.crashes, bad);
  // Runs in which nothing happens show nothing.
  const bool worked = all.grants_in_source > count && all.grants_in_target > count &&
                      all.flips > count && all.grants_of_target_only > 0;
  if (!worked) fmt::print("too little happened\n");
  return bad == 0 && worked ? 0 : 1;
}

int hunt(const std::string& defect, std::uint64_t most) {
  for (const auto& known : dlock::simulation::planted::migration::kDefects) {
    if (!defect.empty() && defect != known.name) continue;
    dlock::core::planted_defect = known.name;
    std::uint64_t seed = 1;
    while (seed <= most && run_fleet(seed).violations.empty()) ++seed;
    dlock::core::planted_defect = {};
    if (seed > most) {
      fmt::print("{}: not shown by {} seeds\n", known.name, most);
      return 1;
    }
    fmt::print("{}: seed {}: {}\n", known.name, seed, [&] {
      dlock::core::planted_defect = known.name;
      const auto again = run_fleet(seed);
      dlock::core::planted_defect = {};
      return again.violations.front().what;
    }());
    if (defect == known.name) return 0;
  }
  if (!defect.empty()) fmt::print("{}: no such defect\n", defect);
  return defect.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Fleets that are moved between two simulated stores, under virtual time");
  std::uint64_t seeds = 200;
  std::uint64_t first = 1;
  std::uint64_t seed = 0;
  std::uint64_t most = 1000;
  bool trace = false;
  bool hunting = false;
  std::string defect;
  app.add_option("--seeds", seeds, "How many runs");
  app.add_option("--first", first, "The first seed");
  app.add_option("--seed", seed, "One run");
  app.add_flag("--trace", trace, "Print every step of it");
  app.add_flag("--hunt", hunting, "Plant each defect and look for a seed that shows it");
  app.add_option("--defect", defect, "Only this one; with --seed: plant it");
  app.add_option("--most", most, "Seeds per defect");
  CLI11_PARSE(app, argc, argv);
  if (hunting) return hunt(defect, most);
  if (seed == 0) return run_seeds(first, seeds);
  dlock::core::planted_defect = defect;
  const auto result = run_fleet(seed, trace);
  fmt::print("{}", result.trace);
  print(seed, result);
  return result.violations.empty() ? 0 : 1;
}
