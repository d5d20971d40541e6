// SPDX-License-Identifier: Apache-2.0
//
// Whether a lock can move from one store to another, by what the two declare. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "dlock/capabilities.hpp"
#include "migration/plan.hpp"

namespace dlock::core::migration {

struct End {
  std::string name;  ///< of the store in the configuration
  Capabilities capabilities;
  /// The store's `lease` setting.
  std::optional<std::chrono::milliseconds> lease;
};

/// Nothing that stands in the store is forgotten, as its server is configured now.
bool keeps_records(const Capabilities& capabilities);

/// Why not, each with what to change. Empty: it can.
std::vector<std::string> objections(const End& from, const End& to);

/// What the plan says of the target, which the ends decide. `max_lease`: the operator's; by default
/// the lease that the target gives here.
void describe_target(Plan& plan, const End& to, std::optional<std::chrono::milliseconds> max_lease);

}  // namespace dlock::core::migration
