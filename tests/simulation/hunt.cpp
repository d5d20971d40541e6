// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/hunt.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace dlock::simulation {
namespace {

void add(Sum& sum, std::uint64_t seed, RunResult result) {
  ++sum.runs;
  sum.acquisitions += result.acquisitions;
  sum.contended += result.contended;
  sum.adoptions += result.adoptions;
  sum.simulated += result.simulated;
  sum.faults.add(result.faults);
  for (const auto& [fault, count] : result.doubles) sum.doubles[fault] += count;
  sum.lateness.insert(sum.lateness.end(), result.lateness.begin(), result.lateness.end());
  if (result.violations.empty()) return;
  ++sum.bad_runs;
  if (sum.bad_seed && *sum.bad_seed < seed) return;
  sum.bad_seed = seed;
  sum.violations = std::move(result.violations);
}

}  // namespace

Sum campaign(const Campaign& what, const std::function<void(std::uint64_t)>& progress) {
  Sum sum;
  std::mutex mutex;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> found{false};
  const auto work = [&] {
    for (;;) {
      const auto index = next.fetch_add(1);
      if (index >= what.seeds || (what.until_found && found)) return;
      RunOptions options;
      options.seed = what.first_seed + index;
      options.kind = what.kind;
      options.way = what.way;
      options.defect = what.defect;
      auto result = run(options);
      if (!result.violations.empty()) found = true;
      const std::lock_guard lock(mutex);
      add(sum, options.seed, std::move(result));
      if (progress) progress(sum.runs);
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < what.jobs; ++i) threads.emplace_back(work);
  threads.clear();
  return sum;
}

}  // namespace dlock::simulation
