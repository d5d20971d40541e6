// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/local/sim_local.hpp"

namespace dlock::simulation {

std::unique_ptr<SimStore> make_local(World& world, Network& network, bool exclusive) {
  if (!exclusive) return nullptr;
  return std::make_unique<SimLocal>(world, network);
}

}  // namespace dlock::simulation
