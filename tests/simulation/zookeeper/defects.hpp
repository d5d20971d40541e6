// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "tests/simulation/defects.hpp"

namespace dlock::simulation::zookeeper {

inline constexpr std::array<Defect, 0> kDefects{};

}  // namespace dlock::simulation::zookeeper
