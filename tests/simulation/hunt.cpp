// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/hunt.hpp"

#include <sched.h>

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

/// A fiber is a thread, and a switch to one is several times quicker on the same core.
void stay_on_one_core(int number) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int skip = number % std::max(CPU_COUNT(&allowed), 1);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

}  // namespace

Sum campaign(const Campaign& what, const std::function<void(std::uint64_t)>& progress) {
  Sum sum;
  std::mutex mutex;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> found{false};
  const auto work = [&](int number) {
    stay_on_one_core(number);
    for (;;) {
      const auto index = next.fetch_add(1);
      if (index >= what.seeds || (what.until_found && found)) return;
      RunOptions options;
      options.seed = what.first_seed + index;
      options.kind = what.kind;
      options.exclusive = what.exclusive;
      options.defect = what.defect;
      auto result = run(options);
      if (!result.violations.empty()) found = true;
      const std::lock_guard lock(mutex);
      add(sum, options.seed, std::move(result));
      if (progress) progress(sum.runs);
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < what.jobs; ++i) threads.emplace_back(work, i);
  threads.clear();
  return sum;
}

}  // namespace dlock::simulation
