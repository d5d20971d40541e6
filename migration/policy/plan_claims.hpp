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

/// In the source. `program`: what the claim's id begins with, in place of its first 13 characters:
/// the program of a plan in mode dual, or that it takes part in one of mode move. `gate`: of a
/// store that can have one, the claim is made while the plan's gate is so; null: it does not
/// matter.
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
