// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/defects.hpp"

namespace dlock::simulation {

std::vector<Defect> all_defects() { return {}; }

}  // namespace dlock::simulation
