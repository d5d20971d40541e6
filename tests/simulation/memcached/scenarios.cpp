// SPDX-License-Identifier: Apache-2.0
//
// What has to come of a few chosen events.
#include "tests/simulation/scenario.hpp"

#include "tests/simulation/bench.hpp"
#include "tests/simulation/memcached/sim_memcached.hpp"

namespace dlock::simulation {
namespace memcached {
namespace {

constexpr auto kLock = "orders/42";

struct MemcachedBench : Bench<SimMemcached> {
  explicit MemcachedBench(std::uint64_t seed) : Bench(seed, true) {}
  Program& connected(const std::string& name) { return Bench::connected(name, kLock); }
  bool is_taken() { return !store.owners(kLock).empty(); }
};

/// Nobody wants the lock; a late request takes it. Whether somebody soon gives it back.
bool is_given_back_soon(MemcachedBench& bench) {
  bench.run_until([&] { return bench.is_taken(); }, milliseconds(1800));
  bench.run(milliseconds(2000));  // strays are looked for once a second, or a quarter more
  return !bench.is_taken();
}

// Each tells whether all went well.

bool a_late_add_is_looked_for(std::uint64_t seed) {
  MemcachedBench bench(seed);
  auto& program = bench.connected("a");
  bench.network.arm(program.process, Fault::overtaken, [] {});
  const auto attempt = program.acquire(kLock);
  if (!bench.granted(attempt, seconds(1))) return true;
  program.release();
  bench.run_until([&] { return !bench.is_taken(); }, milliseconds(10));
  return is_given_back_soon(bench);
}

bool who_gives_up_a_busy_lock_leaves_nothing_on_its_way(std::uint64_t seed) {
  MemcachedBench bench(seed);
  auto& program = bench.connected("a");
  auto& other = bench.program("b");
  if (!bench.granted(other.acquire(kLock))) return true;
  bench.network.arm(program.process, Fault::overtaken, [] {});
  const auto attempt = program.acquire(kLock, milliseconds(0));
  bench.run(milliseconds(3));
  other.release();
  const bool given_back = is_given_back_soon(bench);
  return attempt->held() || given_back;
}

bool an_add_that_was_answered_slowly_is_taken_back(std::uint64_t seed) {
  MemcachedBench bench(seed);
  auto& program = bench.connected("a");
  auto& network = bench.network;
  network.arm(program.process, Fault::reply_late,
              [&] { network.arm(program.process, Fault::request_lost, [] {}); });
  const auto attempt = program.acquire(kLock, milliseconds(0));
  bench.run_until([&] { return attempt->told; }, seconds(6));
  bench.run(milliseconds(1300));  // less than what is left of the lease
  return attempt->held() || !bench.is_taken();
}

bool a_renewal_without_an_answer_renews_nothing(std::uint64_t seed) {
  MemcachedBench bench(seed);
  auto& program = bench.connected("a");
  auto& network = bench.network;
  const auto first = program.acquire(kLock);
  if (!bench.granted(first)) return true;
  // A renewal looks, and writes: the write breaks, and nothing more gets through.
  network.arm(program.process, Fault::duplicated, [&] {
    network.arm(program.process, Fault::reset_before, [&] { network.cut(program.process); });
  });
  const auto second = bench.program("b").acquire(kLock);
  bench.run_until([&] { return second->held(); }, seconds(15));
  const bool both = second->held() && !first->lost();
  network.mend(program.process);
  return !both;
}

}  // namespace
}  // namespace memcached

std::vector<Scenario> memcached_scenarios() {
  using namespace memcached;
  return {
      {"a late add is looked for", &fails<&a_late_add_is_looked_for>, 8},
      {"who gives up a busy lock leaves nothing on its way",
       &fails<&who_gives_up_a_busy_lock_leaves_nothing_on_its_way>, 8},
      {"an add that was answered slowly is taken back",
       &fails<&an_add_that_was_answered_slowly_is_taken_back>, 8},
      {"a renewal without an answer renews nothing",
       &fails<&a_renewal_without_an_answer_renews_nothing>, 8},
  };
}

}  // namespace dlock::simulation
