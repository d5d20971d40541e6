// SPDX-License-Identifier: Apache-2.0
//
// What has to come of a lock that stays with its program, on any store that tells who asks.
#pragma once

#include <chrono>
#include <memory>

#include "tests/simulation/bench.hpp"

namespace dlock::simulation {

inline constexpr auto kStays = "orders/42";

template <class AnyBench>
Program& keeper(AnyBench& bench, unsigned cohort) {
  auto& program = bench.program("keeper");
  program.cached = std::make_shared<core::CachedLock>(
      core::CachedLock::Limits{.cache = std::chrono::hours(1), .cohort = cohort});
  return program;
}

/// It would stay for an hour.
template <class AnyBench>
bool is_given_up_to_who_asks(AnyBench& bench) {
  auto& program = keeper(bench, 0);
  if (!bench.granted(program.acquire(kStays))) return false;
  program.release();
  bench.run(milliseconds(100));
  return bench.granted(bench.program("other").acquire(kStays), seconds(2));
}

/// Its program stood still for longer than the lease, and asks for it before anything else.
template <class AnyBench>
bool is_not_given_again_after_a_pause(AnyBench& bench) {
  auto& program = keeper(bench, 0);
  if (!bench.granted(program.acquire(kStays))) return false;
  program.release();
  bench.run(milliseconds(100));
  program.process.pause();
  const auto again = program.acquire(kStays);
  const auto other = bench.program("other").acquire(kStays);
  bench.run(bench.store.longest_lease() + seconds(1));
  program.process.resume();
  bench.run(seconds(1));
  return other->held() && !again->told;
}

/// There is always somebody who waits for it in its own program.
template <class AnyBench>
bool is_not_handed_on_for_ever(AnyBench& bench) {
  auto& program = keeper(bench, 2);
  auto one = program.acquire(kStays);
  auto next = program.acquire(kStays);
  if (!bench.granted(one)) return false;
  const auto other = bench.program("other").acquire(kStays);
  const auto end = bench.world.now() + seconds(2);
  while (!other->told && bench.world.now() < end) {
    bench.run(milliseconds(5));
    for (auto* attempt : {&one, &next}) {
      if (!(*attempt)->held()) continue;
      program.release(*attempt);
      *attempt = program.acquire(kStays);
    }
  }
  return other->held();
}

}  // namespace dlock::simulation
