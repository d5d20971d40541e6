// SPDX-License-Identifier: Apache-2.0
//
// dlock-sim: runs the simulation by hand. Replays one seed with its trace, runs many, or hunts the
// planted defects.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/simulation/hunt.hpp"
#include "tests/simulation/load.hpp"
#include "tests/simulation/planted.hpp"
#include "tests/simulation/scenario.hpp"
#include "tests/simulation/ways.hpp"

namespace {

using namespace dlock::simulation;
using dlock::Duration;

struct Arguments {
  std::string store = "all";
  std::string mode = "all";
  std::string with;
  std::uint64_t seed = 0;
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  std::uint64_t again = 0;
  std::uint64_t most = 5000;
  std::uint64_t load = 0;
  int programs = 4;
  std::string defect;
  std::string scenario;
  bool trace = false;
  bool hunt = false;
  bool scenarios = false;
  bool table = false;
  int jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
};

/// Calls `f(kind, way)` for all that was asked for.
template <class F>
void for_each_asked(const Arguments& asked, F f) {
  for (const auto& [kind, way] : choices(asked.store, asked.mode, asked.with)) f(*kind, way);
}

void print_violations(const dlock::checkers::Violations& violations) {
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(violations.size(), kShown); ++i) {
    const auto& violation = violations[i];
    const auto seconds = std::chrono::duration<double>(violation.at.time_since_epoch()).count();
    fmt::print("  at {:.6f} s: {}\n", seconds - 3600, violation.what);
  }
  if (violations.size() > kShown) fmt::print("  and {} more\n", violations.size() - kShown);
}

std::string replay_command(const Kind& kind, const Way& way, std::uint64_t seed,
                           std::string_view defect) {
  return fmt::format("dlock-sim {} --seed {} --trace{}{}", options_of(kind, way), seed,
                     defect.empty() ? "" : " --defect ", defect);
}

void print_table(const FaultTable& table) {
  fmt::print("  {:<18}", "fault");
  for (const auto& call : kCallNames) fmt::print("{:>10}", call);
  fmt::print("\n  {:<18}", "(called)");
  for (const auto count : table.called) fmt::print("{:>10}", count);
  fmt::print("\n");
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    std::uint64_t any = 0;
    for (const auto& row : table.struck) any += row.at(fault);
    if (any == 0) continue;
    fmt::print("  {:<18}", kFaultNames.at(fault));
    for (const auto& row : table.struck) fmt::print("{:>10}", row.at(fault));
    fmt::print("\n");
  }
}

void print_lateness(std::vector<Duration> lateness) {
  if (lateness.empty()) return;
  std::sort(lateness.begin(), lateness.end());
  const auto ms = [&](double part) {
    const auto at = static_cast<std::size_t>(part * static_cast<double>(lateness.size() - 1));
    return std::chrono::duration<double, std::milli>(lateness.at(at)).count();
  };
  fmt::print(
      "  losses told: {}; after the local deadline by: p50 {:.3f} ms, p99.9 {:.3f} ms, "
      "worst {:.3f} ms\n",
      lateness.size(), ms(0.5), ms(0.999), ms(1));
}

int print_sum(const Kind& kind, const Way& way, const Sum& sum, double seconds,
              const Arguments& asked) {
  fmt::print(
      "{}: {} seeds, {} acquisitions checked, {:.0f} % contended, {:.0f} a second, "
      "{:.0f} s simulated\n",
      title(kind, way), sum.runs, sum.acquisitions,
      sum.acquisitions == 0
          ? 0.0
          : 100.0 * static_cast<double>(sum.contended) / static_cast<double>(sum.acquisitions),
      static_cast<double>(sum.acquisitions) / seconds,
      std::chrono::duration<double>(sum.simulated).count());
  for (const auto& [cause, count] : sum.doubles) {
    fmt::print("  double grants by {}: {}, each told to the earlier holder\n", to_string(cause),
               count);
  }
  if (way.exports) fmt::print("  exported grants that were adopted: {}\n", sum.adoptions);
  print_lateness(sum.lateness);
  if (asked.table) print_table(sum.faults);
  if (!sum.bad_seed) {
    fmt::print("  violations: none\n");
    return 0;
  }
  fmt::print("  violations in {} runs; the first is seed {}:\n", sum.bad_runs, *sum.bad_seed);
  print_violations(sum.violations);
  fmt::print("  replay: {}\n", replay_command(kind, way, *sum.bad_seed, asked.defect));
  return 1;
}

int replay(const Arguments& asked) {
  int status = 0;
  for_each_asked(asked, [&](const Kind& kind, const Way& way) {
    const auto result = run({asked.seed, &kind, way, asked.trace, asked.defect});
    fmt::print("{}", result.trace);
    fmt::print("{}, seed {}: {} acquisitions, {} violations\n", title(kind, way), asked.seed,
               result.acquisitions, result.violations.size());
    print_violations(result.violations);
    if (!result.violations.empty()) status = 1;
  });
  return status;
}

int run_many(const Arguments& asked) {
  int status = 0;
  for_each_asked(asked, [&](const Kind& kind, const Way& way) {
    const auto began = std::chrono::steady_clock::now();
    Campaign what;
    what.kind = &kind;
    what.way = way;
    what.first_seed = asked.first;
    what.seeds = asked.seeds;
    what.defect = asked.defect;
    what.jobs = asked.jobs;
    const auto sum = campaign(what);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    status |= print_sum(kind, way, sum, took.count(), asked);
  });
  return status;
}

/// What many held locks cost the servers.
int run_load(const Arguments& asked) {
  int status = 0;
  for (const auto& kind : kinds()) {
    if (asked.store != "all" && asked.store != kind.name) continue;
    const auto result = load({.kind = &kind, .locks = asked.load, .programs = asked.programs});
    if (result.phases.front().by_kind.empty()) continue;  // it counts nothing
    fmt::print("{}: {} locks of {} programs, {} bytes of memory a lock\n", kind.name, asked.load,
               asked.programs, result.bytes_a_lock);
    for (const auto& phase : result.phases) {
      const auto took = std::chrono::duration<double>(phase.took).count();
      std::uint64_t all = 0;
      for (const auto& [what, traffic] : phase.by_kind) {
        all += traffic.requests;
        fmt::print("  {:<8} {:<20} {:>10} requests {:>10.1f} a second {:>8} bytes each\n",
                   phase.name, what, traffic.requests, static_cast<double>(traffic.requests) / took,
                   traffic.bytes / traffic.requests);
      }
      fmt::print(
          "  {:<8} in {:.1f} s: {:.0f} a second, {} in the fullest, {} in the fullest 10 ms\n",
          phase.name, took, static_cast<double>(all) / took, phase.most_a_second,
          phase.most_a_hundredth);
    }
    if (result.lost != 0) fmt::print("  {} locks were lost\n", result.lost);
    if (result.left != 0) fmt::print("  {} keys were left\n", result.left);
    if (result.lost + result.left != 0) status = 1;
  }
  return status;
}

/// The same seed twice: the same trace, byte for byte.
int run_again(const Arguments& asked) {
  int status = 0;
  for_each_asked(asked, [&](const Kind& kind, const Way& way) {
    std::uint64_t different = 0;
    std::size_t bytes = 0;
    for (std::uint64_t i = 0; i < asked.again; ++i) {
      const RunOptions options{asked.first + i, &kind, way, true, {}};
      const auto first = run(options);
      const auto second = run(options);
      bytes += first.trace.size();
      if (first.trace != second.trace) {
        if (different++ == 0) fmt::print("  seed {} differs from itself\n", options.seed);
      }
    }
    fmt::print("{}: {} seeds run twice, {} bytes of trace, {} different\n", title(kind, way),
               asked.again, bytes, different);
    if (different != 0) status = 1;
  });
  return status;
}

/// How a planted defect came to light.
struct Catch {
  std::uint64_t seeds = 0;
  std::string how;
};

std::vector<Choice> runs_of(const Defect& defect, const Arguments& asked) {
  const bool is_any = asked.store == "all" && asked.mode == "all" && asked.with.empty();
  if (!is_any) return choices(asked.store, asked.mode, asked.with);
  if (defect.mode == "pairs") return pairs();
  if (!defect.mode.empty()) return choices("all", std::string(defect.mode), "");
  auto all = choices("all", "all", "");
  const auto both = pairs();
  all.insert(all.end(), both.begin(), both.end());
  return all;
}

/// By chance: the fewest seeds that show it, on any store, as exclusive before as installed. In
/// rounds of twice as many, so that what one way shows soon is not looked for in all the others.
std::optional<Catch> look_for(const Defect& defect, const Arguments& asked) {
  constexpr std::uint64_t kFirstRound = 4;
  std::optional<Catch> best;
  const auto all = runs_of(defect, asked);
  std::uint64_t tried = 0;
  while (!best && tried < asked.most) {
    const auto most = std::min(std::max(2 * tried, kFirstRound), asked.most);
    for (const auto& [kind, way] : all) {
      if (defect.store != "any" && (defect.store != kind->name || way.with != nullptr)) continue;
      Campaign what;
      what.kind = kind;
      what.way = way;
      what.first_seed = asked.first + tried;
      what.seeds = (best ? best->seeds - 1 : most) - tried;
      what.defect = defect.name;
      what.jobs = asked.jobs;
      what.until_found = true;
      if (what.seeds == 0) continue;
      const auto sum = campaign(what);
      if (!sum.bad_seed) continue;
      best = Catch{*sum.bad_seed - asked.first + 1,
                   fmt::format("{}: {}", title(*kind, way), sum.violations.front().what)};
    }
    tried = most;
  }
  return best;
}

/// The first seed of any scenario of its store that goes wrong; they know nothing of it.
std::optional<Catch> try_scenarios(const Defect& defect) {
  dlock::simulation::planted_defect = defect.name;
  std::vector<std::pair<std::string_view, Scenario>> chosen;
  for (const auto& [store, scenarios] : all_scenarios()) {
    if (defect.store != "any" && defect.store != store) continue;
    for (const auto& scenario : scenarios) chosen.emplace_back(store, scenario);
  }
  // Those first that show it soon or never.
  std::stable_sort(chosen.begin(), chosen.end(), [](const auto& left, const auto& right) {
    return left.second.seeds < right.second.seeds;
  });
  std::optional<Catch> best;
  for (const auto& [store, scenario] : chosen) {
    const auto most = best ? std::min(best->seeds - 1, scenario.seeds) : scenario.seeds;
    for (std::uint64_t seed = 1; seed <= most; ++seed) {
      if (!scenario.goes_wrong(seed)) continue;
      best = Catch{seed, fmt::format("{}, scenario: {}", store, scenario.name)};
      break;
    }
  }
  dlock::simulation::planted_defect = {};
  return best;
}

/// Nothing is planted, as a rule: nothing goes wrong.
int run_scenarios(const Arguments& asked) {
  dlock::simulation::planted_defect = asked.defect;
  int wrong = 0;
  bool is_any = false;
  for (const auto& [store, scenarios] : all_scenarios()) {
    if (asked.store != "all" && asked.store != store) continue;
    for (const auto& scenario : scenarios) {
      if (!asked.scenario.empty() && asked.scenario != scenario.name) continue;
      is_any = true;
      std::uint64_t bad = 0;
      for (std::uint64_t seed = 1; seed <= scenario.seeds && bad == 0; ++seed) {
        if (scenario.goes_wrong(seed)) bad = seed;
      }
      if (bad != 0) ++wrong;
      fmt::print("{:<10} {:<50} {}\n", store, scenario.name,
                 bad == 0 ? fmt::format("{} seeds, as it has to be", scenario.seeds)
                          : fmt::format("goes wrong with seed {}", bad));
    }
  }
  if (!is_any) fmt::print(stderr, "dlock-sim: no scenario of store '{}'\n", asked.store);
  return wrong == 0 && is_any ? 0 : 1;
}

int hunt(const Arguments& asked) {
  int missed = 0;
  int by_scenario = 0;
  std::vector<std::uint64_t> needed;
  for (const auto& defect : all_defects()) {
    if (!asked.defect.empty() && asked.defect != defect.name) continue;
    if (asked.store != "all" && defect.store != "any" && defect.store != asked.store) continue;
    auto found = look_for(defect, asked);
    if (found) {
      needed.push_back(found->seeds);
    } else if (found = try_scenarios(defect); found) {
      ++by_scenario;
    }
    if (found) {
      fmt::print("{:<38} {:>6}  {}\n", defect.name, found->seeds, found->how);
    } else {
      ++missed;
      fmt::print("{:<38} MISSED in {} seeds: {}\n", defect.name, asked.most, defect.what);
    }
    std::fflush(stdout);
  }
  std::sort(needed.begin(), needed.end());
  fmt::print("planted defects: {} caught by chance", needed.size());
  if (!needed.empty()) {
    fmt::print(" (seeds needed: median {}, most {})", needed[needed.size() / 2], needed.back());
  }
  fmt::print(", {} by a scenario, {} missed\n", by_scenario, missed);
  if (needed.empty() && by_scenario + missed == 0) {
    fmt::print("no such defect{}{} here\n", asked.defect.empty() ? "" : ": ", asked.defect);
    return 1;
  }
  return missed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments asked;
  CLI::App app("Simulated stores, production code, every fault: is anybody wrong about a lock?");
  app.add_option("--store", asked.store, "zookeeper, redis, memcached, local or all");
  app.add_option("--mode", asked.mode,
                 "exclusive, as-installed, readers, permits, exports, several, cached or all");
  app.add_option("--with", asked.with, "with --mode several: a second store, or all");
  app.add_option("--seed", asked.seed, "run this one seed");
  app.add_flag("--trace", asked.trace, "with --seed: every step");
  app.add_option("--first", asked.first, "the first of many seeds");
  app.add_option("--seeds", asked.seeds, "how many")->check(CLI::PositiveNumber);
  app.add_option("--again", asked.again, "run so many seeds twice and compare their traces");
  app.add_flag("--table", asked.table, "how often each fault struck each call");
  app.add_flag("--hunt", asked.hunt, "plant each defect in turn and look for a seed that shows it");
  app.add_flag("--scenarios", asked.scenarios, "the chosen courses of events, nothing planted");
  app.add_option("--scenario", asked.scenario, "this one of them");
  app.add_option("--defect", asked.defect, "plant this one");
  app.add_option("--most", asked.most, "with --hunt: seeds to try before the scenarios");
  app.add_option("--load", asked.load, "hold so many locks, and count what the servers are asked");
  app.add_option("--programs", asked.programs, "with --load: of so many programs")
      ->check(CLI::PositiveNumber);
  app.add_option("--jobs", asked.jobs, "threads");
  CLI11_PARSE(app, argc, argv);
  bool is_any = false;
  for_each_asked(asked, [&](const Kind&, const Way&) { is_any = true; });
  if (!is_any) {
    fmt::print(stderr, "dlock-sim: there is nothing to run: no store '{}' in mode '{}'\n",
               asked.store, asked.mode);
    return 2;
  }
  if (asked.load != 0) return run_load(asked);
  if (asked.seed != 0) return replay(asked);
  if (asked.again != 0) return run_again(asked);
  if (asked.hunt) return hunt(asked);
  if (asked.scenarios || !asked.scenario.empty()) return run_scenarios(asked);
  return run_many(asked);
}
