// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tests/simulation/scenario.hpp"

namespace dlock::simulation {

/// Where the numbers of a lock's nodes end.
std::vector<Scenario> counter_scenarios();

}  // namespace dlock::simulation
