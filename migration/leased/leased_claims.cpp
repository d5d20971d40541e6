// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_claims.hpp"

#include "migration/gate.hpp"
#include "migration/policy/plan_claims.hpp"

namespace dlock::core::migration {

Acquisition::Request part_request(const GateReader& reader, Acquisition::Request request,
                                  bool in_source) {
  const auto& stores = reader.stores();
  const auto mark = participant_mark(reader.plan());
  request.diagnostics = nullptr;
  request.min_token = reader.floor();
  if (in_source) {
    request.policy = source_claims(*stores.from, mark);
  } else {
    const StartedPlan plan{reader.plan(), reader.plan_id(), stores.from->name()};
    request.policy = target_claims(*stores.to, plan, mark);
  }
  return request;
}

}  // namespace dlock::core::migration
