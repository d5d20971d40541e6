// SPDX-License-Identifier: Apache-2.0
//
// Many names towards one goal, side by side: a name whose holder stays does not hold up the others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "migration/move/coordinator.hpp"

namespace dlock::core::migration {

/// Loop only. In the order of `names`.
asio::awaitable<std::vector<StepReport>> drive_all(std::shared_ptr<Coordinator> coordinator,
                                                   Env& env, Goal goal,
                                                   std::vector<std::string> names);

}  // namespace dlock::core::migration
