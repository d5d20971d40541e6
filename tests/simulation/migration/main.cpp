// SPDX-License-Identifier: Apache-2.0
//
// dlock-sim-migration: seeded runs of a fleet that is moved; the hunt for planted defects.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string_view>

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
    all.returns += result.returns;
    if (result.violations.empty()) continue;
    ++bad;
    print(seed, result);
    if (bad >= 5) break;
  }
  fmt::print(
      "{} seeds: {} grants in S, {} in T ({} of clients that know T alone), {} flips, {} "
      "kills, {} returns by a plan of their own, {} bad\n",
      count, all.grants_in_source, all.grants_in_target, all.grants_of_target_only, all.flips,
      all.crashes, all.returns, bad);
  // Runs in which nothing happens show nothing.
  const bool worked = all.grants_in_source > count && all.grants_in_target > count &&
                      all.flips > count && all.grants_of_target_only > 0;
  if (!worked) fmt::print("too little happened\n");
  return bad == 0 && worked ? 0 : 1;
}

/// Empty: no seed shows it.
std::optional<std::uint64_t> seed_that_shows(std::string_view defect, std::uint64_t most) {
  dlock::core::planted_defect = defect;
  std::optional<std::uint64_t> found;
  for (std::uint64_t seed = 1; seed <= most && !found; ++seed) {
    const auto result = run_fleet(seed);
    if (result.violations.empty()) continue;
    found = seed;
    fmt::print("{:<38} seed {:>4}: {}\n", defect, seed, result.violations.front().what);
  }
  dlock::core::planted_defect = {};
  if (!found) fmt::print("{:<38} MISSED in {} seeds\n", defect, most);
  std::fflush(stdout);
  return found;
}

int hunt(const std::string& defect, std::uint64_t most) {
  int shown = 0;
  int missed = 0;
  for (const auto& known : dlock::simulation::planted::migration::kDefects) {
    if (!defect.empty() && defect != known.name) continue;
    ++(seed_that_shows(known.name, most) ? shown : missed);
  }
  fmt::print("planted defects: {} shown, {} missed\n", shown, missed);
  if (shown + missed == 0) fmt::print("{}: no such defect\n", defect);
  return shown > 0 && missed == 0 ? 0 : 1;
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
