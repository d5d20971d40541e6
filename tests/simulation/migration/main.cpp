// SPDX-License-Identifier: Apache-2.0
//
// dlock-sim-migration: seeded runs of a fleet that is moved, under its own gate or a leased one;
// the hunt for planted defects.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/defects.hpp"
#include "tests/simulation/migration/gate_fleet.hpp"
#include "tests/simulation/migration/leased_fleet.hpp"
#include "tests/simulation/planted.hpp"

namespace {

using dlock::simulation::Defect;
using dlock::simulation::migration::GateResult;
using dlock::simulation::migration::LeasedResult;

template <class Result, class... Fields>
void sum(Result& all, const Result& one, Fields... field) {
  ((all.*field += one.*field), ...);
}

/// Runs in which nothing happens show nothing: each mode says what must have.
struct Move {
  using Result = GateResult;
  static constexpr const char* kFlags = "";
  static Result run(std::uint64_t seed, bool trace) {
    return dlock::simulation::migration::run_gate_fleet(seed, trace);
  }
  static std::vector<Defect> defects() { return dlock::simulation::move_defects(); }

  void add(const Result& result) {
    sum(all, result, &Result::grants_in_source, &Result::grants_in_target,
        &Result::grants_of_target_only, &Result::grants_of_source_only, &Result::names,
        &Result::turns, &Result::sealed_at_once, &Result::withdrawals, &Result::refused_starts,
        &Result::crashes, &Result::returns, &Result::travels);
  }
  bool worked(std::uint64_t count) const {
    return all.grants_in_source > count && all.grants_in_target > count &&
           all.grants_of_target_only > count && all.grants_of_source_only > 0 &&
           all.names > 4 * count && all.turns > 2 * count && all.sealed_at_once > 0 &&
           all.withdrawals > 0 && all.refused_starts > 0 && all.returns > 0 && all.travels > 0;
  }
  std::string words() const {
    return fmt::format(
        "{} grants in S, {} in T ({} of clients that know T alone, {} of such that know S alone) "
        "of {} locks, {} turns of gates, {} claims sealed at once, {} withdrawals, {} starts "
        "refused, {} kills, {} returns by a plan of their own, {} by a third store",
        all.grants_in_source, all.grants_in_target, all.grants_of_target_only,
        all.grants_of_source_only, all.names, all.turns, all.sealed_at_once, all.withdrawals,
        all.refused_starts, all.crashes, all.returns, all.travels);
  }
  Result all;
};

struct Leased {
  using Result = LeasedResult;
  static constexpr const char* kFlags = "--leased ";
  static Result run(std::uint64_t seed, bool trace) {
    return dlock::simulation::migration::run_leased_fleet(seed, trace);
  }
  static std::vector<Defect> defects() { return dlock::simulation::leased_defects(); }

  void add(const Result& result) {
    sum(all, result, &Result::grants_of_source, &Result::grants_of_target,
        &Result::grants_of_legacy, &Result::grants_of_target_only, &Result::in_both, &Result::moved,
        &Result::turns, &Result::turns_in_calm, &Result::crashes, &Result::wipes, &Result::cuts,
        &Result::losses);
  }
  bool worked(std::uint64_t count) const {
    return all.grants_of_source > count && all.grants_of_target > count &&
           all.grants_of_legacy > 0 && all.grants_of_target_only > 0 && all.in_both > count &&
           all.moved > 0 && all.turns > 3 * count && all.turns_in_calm > 0;
  }
  std::string words() const {
    return fmt::format(
        "{} grants with a token of S, {} with one of T, {} of clients that know S alone, {} of "
        "such that know T alone; {} holds in both stores, {} that moved; {} turns, {} of them in "
        "calm, "
        "{} kills, {} wipes, {} links cut, {} gates lost",
        all.grants_of_source, all.grants_of_target, all.grants_of_legacy, all.grants_of_target_only,
        all.in_both, all.moved, all.turns, all.turns_in_calm, all.crashes, all.wipes, all.cuts,
        all.losses);
  }
  Result all;
};

template <class Mode>
void print(std::uint64_t seed, const typename Mode::Result& result) {
  fmt::print("seed {}: {} violations; replay: dlock-sim-migration {}--seed {} --trace\n", seed,
             result.violations.size(), Mode::kFlags, seed);
  for (const auto& violation : result.violations) fmt::print("  {}\n", violation.what);
}

template <class Mode>
int run_seeds(std::uint64_t first, std::uint64_t count) {
  Mode mode;
  std::uint64_t bad = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const auto result = Mode::run(seed, false);
    mode.add(result);
    if (result.violations.empty()) continue;
    ++bad;
    print<Mode>(seed, result);
    if (bad >= 5) break;
  }
  fmt::print("{} seeds: {}, {} bad\n", count, mode.words(), bad);
  const bool worked = mode.worked(count);
  if (!worked) fmt::print("too little happened\n");
  return bad == 0 && worked ? 0 : 1;
}

/// Each twice: the traces must be the same.
template <class Mode>
int run_again(std::uint64_t first, std::uint64_t count) {
  std::uint64_t different = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    if (Mode::run(seed, true).trace == Mode::run(seed, true).trace) continue;
    ++different;
    fmt::print("seed {}: another trace the second time\n", seed);
  }
  fmt::print("{} seeds twice, {} different\n", count, different);
  return different == 0 ? 0 : 1;
}

template <class Mode>
bool shows(std::string_view defect, std::uint64_t seed) {
  const auto result = Mode::run(seed, false);
  if (result.violations.empty()) return false;
  fmt::print("{:<38} seed {:>4}: {}\n", defect, seed, result.violations.front().what);
  return true;
}

/// The seed that the table has, or else the first; from another one on, that.
template <class Mode>
bool is_shown(const Defect& defect, std::uint64_t first, std::uint64_t most) {
  dlock::simulation::planted_defect = defect.name;
  bool found = first == 1 && defect.seed > 0 && shows<Mode>(defect.name, defect.seed);
  for (std::uint64_t seed = first; seed < first + most && !found; ++seed) {
    found = shows<Mode>(defect.name, seed);
  }
  dlock::simulation::planted_defect = {};
  if (!found) fmt::print("{:<38} MISSED in {} seeds\n", defect.name, most);
  std::fflush(stdout);
  return found;
}

template <class Mode>
int hunt(const std::string& defect, std::uint64_t first, std::uint64_t most) {
  int shown = 0;
  int missed = 0;
  for (const auto& known : Mode::defects()) {
    if (!defect.empty() && defect != known.name) continue;
    ++(is_shown<Mode>(known, first, most) ? shown : missed);
  }
  fmt::print("planted defects: {} shown, {} missed\n", shown, missed);
  if (shown + missed == 0) fmt::print("{}: no such defect\n", defect);
  return shown > 0 && missed == 0 ? 0 : 1;
}

struct Options {
  std::uint64_t seeds = 200;
  std::uint64_t first = 1;
  std::uint64_t seed = 0;
  std::uint64_t most = 1000;
  std::uint64_t again = 0;
  bool leased = false;
  bool trace = false;
  bool hunting = false;
  std::string defect;
};

template <class Mode>
int run(const Options& options) {
  if (options.hunting) return hunt<Mode>(options.defect, options.first, options.most);
  if (options.again > 0) return run_again<Mode>(options.first, options.again);
  if (options.seed == 0) return run_seeds<Mode>(options.first, options.seeds);
  dlock::simulation::planted_defect = options.defect;
  const auto result = Mode::run(options.seed, options.trace);
  fmt::print("{}", result.trace);
  print<Mode>(options.seed, result);
  return result.violations.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Fleets that are moved between two simulated stores, under virtual time");
  Options options;
  app.add_flag("--leased", options.leased, "Under a leased gate; else mode move");
  app.add_option("--seeds", options.seeds, "How many runs");
  app.add_option("--first", options.first, "The first seed");
  app.add_option("--again", options.again, "That many seeds, each twice: the same trace");
  app.add_option("--seed", options.seed, "One run");
  app.add_flag("--trace", options.trace, "Print every step of it");
  app.add_flag("--hunt", options.hunting, "Plant each defect and look for a seed that shows it");
  app.add_option("--defect", options.defect, "Only this one; with --seed: plant it");
  app.add_option("--most", options.most, "Seeds per defect");
  CLI11_PARSE(app, argc, argv);
  return options.leased ? run<Leased>(options) : run<Move>(options);
}
