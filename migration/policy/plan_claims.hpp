// SPDX-License-Identifier: Apache-2.0
//
// How those who take part in a plan claim: in its source with a mark and, where the plan has one,
// under its gate; in its target if that is the store which the plan was started with.
#pragma once

#include <memory>
#include <string>

#include "core/store/claim_policy.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::core::migration {

/// In the source. `program`: the mark of a participant, which replaces the first 13 characters of
/// the claim's id. `gate`: in a store that can compare it, the claim is made only while the plan's
/// gate is so; null: no comparison.
std::shared_ptr<ClaimPolicy> source_claims(Store& store, std::string program,
                                           GatePtr gate = nullptr);

/// One start of a plan.
struct StartedPlan {
  std::string name;
  std::string id;
  /// A record that leads there is for the caller. One that leads elsewhere and was left by a plan
  /// that has come to its end is passed.
  std::string source;
};

/// In the target. Refused if the store was not started with that plan.
std::shared_ptr<ClaimPolicy> target_claims(Store& store, StartedPlan plan,
                                           std::string program = {});

}  // namespace dlock::core::migration
