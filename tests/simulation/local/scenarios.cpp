// SPDX-License-Identifier: Apache-2.0
//
// What has to come of a few chosen events, whatever their moments.
#include "tests/simulation/scenario.hpp"

#include "tests/simulation/local/sim_local.hpp"
#include "tests/simulation/records.hpp"

namespace dlock::simulation {
namespace {

using LocalBench = Bench<SimLocal>;

template <bool (*course)(LocalBench&)>
bool on_files(std::uint64_t seed) {
  LocalBench bench(seed);
  return course(bench);
}

/// It was given back, and another has it.
bool sealed_after_a_release(std::uint64_t seed) {
  LocalBench bench(seed);
  return sealed_by_who_has_lost_it(bench, [&](Program& holder) {
    holder.release();
    bench.run(milliseconds(50));
    auto next = bench.program("next").acquire(kSealed);
    bench.granted(next);
  });
}

}  // namespace

std::vector<Scenario> local_scenarios() {
  return {{"granted beside a record", &on_files<&granted_beside_a_record<LocalBench>>, 10},
          {"sealed after a release", &sealed_after_a_release, 1},
          {"token below the floor", &on_files<&token_below_the_floor<LocalBench>>, 1},
          {"a waiter's token below the floor",
           &on_files<&waiters_token_below_the_floor<LocalBench>>, 1}};
}

}  // namespace dlock::simulation
