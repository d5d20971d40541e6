// SPDX-License-Identifier: Apache-2.0
#include "migration/eligibility.hpp"

#include <fmt/format.h>

namespace dlock::core::migration {
namespace {

void object_to_losses(const End& from, std::vector<std::string>& all) {
  if (!from.capabilities.can_seal) {
    all.push_back(fmt::format("the store '{}' cannot keep a migration's record in a lock's place",
                              from.name));
  }
  if (from.capabilities.can_seal && !from.capabilities.can_gate) {
    all.push_back(fmt::format(
        "the store '{}' cannot compare a plan's gate with each claim (a Redis cluster keeps them "
        "on two servers): locks that are made later would not meet the plan",
        from.name));
  }
  // A forgotten record makes a lock look free while it is held in the target.
  for (const auto& loss : from.capabilities.record_losses) {
    all.push_back(fmt::format("the store '{}' may lose the record of a moved lock: {}; {}",
                              from.name, loss.reason, loss.remedy));
  }
}

}  // namespace

bool keeps_records(const Capabilities& capabilities) {
  return capabilities.can_seal && capabilities.record_losses.empty();
}

std::vector<std::string> objections(const End& from, const End& to) {
  std::vector<std::string> all;
  object_to_losses(from, all);
  if (!to.capabilities.can_raise) {
    all.push_back(
        fmt::format("the store '{}' cannot raise its tokens: they would go back", to.name));
  }
  for (const End* end : {&from, &to}) {
    if (end->capabilities.token != TokenStrength::none) continue;
    all.push_back(fmt::format("the store '{}' gives no tokens", end->name));
  }
  return all;
}

void describe_target(Plan& plan, const End& to,
                     std::optional<std::chrono::milliseconds> max_lease) {
  const auto& capabilities = to.capabilities;
  plan.leased_target = capabilities.lease_scope != LeaseScope::none;
  plan.lossy_target = !keeps_records(capabilities);
  if (!plan.leased_target) {
    plan.max_lease = std::chrono::milliseconds(0);
  } else if (max_lease) {
    plan.max_lease = *max_lease;
  } else {
    const bool per_claim = capabilities.lease_scope == LeaseScope::claim;
    plan.max_lease = per_claim ? to.lease.value_or(capabilities.lease) : capabilities.lease;
  }
}

}  // namespace dlock::core::migration
