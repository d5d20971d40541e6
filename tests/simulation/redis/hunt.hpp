// SPDX-License-Identifier: Apache-2.0
//
// A short run of a few programs on one simulated Redis, by chance from one seed, judged while it
// goes: for the store's own tests. The simulation's runner judges all stores, and longer.
#pragma once

#include <string>

namespace dlock::simulation::redis {

struct Found {
  std::string complaint;  ///< empty: nothing
  std::string trace;      ///< if asked for
};

Found hunt(std::uint64_t seed, bool exclusive, bool tracing = false);

}  // namespace dlock::simulation::redis
