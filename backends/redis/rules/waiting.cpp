// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/rules/waiting.hpp"

#include <fmt/format.h>

#include "backends/redis/rules/hand_over.hpp"

namespace dlock::redis {
namespace {

std::string_view name(WaiterKind kind) {
  switch (kind) {
    case WaiterKind::none:
      return "none";
    case WaiterKind::notified:
      return "notified";
    case WaiterKind::present:
      return "present";
    case WaiterKind::handed:
      return "handed";
    case WaiterKind::reads:
      return "reads";
  }
  return "none";
}

std::string_view yes_or_no(bool yes) { return yes ? "yes" : "no"; }

}  // namespace

WaiterKind waiter_kind(const ClaimRequest& request, bool hands_over) {
  if (!request.queue) return WaiterKind::none;
  if (request.mode == Mode::shared) return WaiterKind::reads;
  if (hands_over && may_be_handed(request)) return WaiterKind::handed;
  return sends_presence(request) ? WaiterKind::present : WaiterKind::notified;
}

WaitingTexts::WaitingTexts(std::chrono::milliseconds patience) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const auto at_grant = static_cast<AtGrant>(i % kAtGrants);
    texts_.at(i) = fmt::format("queued={} range={} kind={} patience={} arrival=",
                               yes_or_no(at_grant == AtGrant::leave_queue),
                               yes_or_no(at_grant == AtGrant::bring_range),
                               name(static_cast<WaiterKind>(i / kAtGrants)), patience.count());
  }
}

std::string_view WaitingTexts::text(WaiterKind kind, AtGrant at_grant) const {
  return texts_.at(static_cast<std::size_t>(kind) * kAtGrants + static_cast<std::size_t>(at_grant));
}

}  // namespace dlock::redis
