// SPDX-License-Identifier: Apache-2.0
#include "backends/local/rules/tickets.hpp"

#include <algorithm>

namespace dlock::local {
namespace {

// A claim that draws one of these tickets raises the limit. That is three chances, in case the
// first two processes die meanwhile, before a claim has to wait.
bool is_time_to_raise(std::uint64_t ticket, std::uint64_t limit) {
  const auto left = limit - ticket;
  return left == kTicketsPerSync / 2 || left == kTicketsPerSync / 4 || left == kTicketsPerSync / 8;
}

/// An unknown number of tickets of another boot was lost.
Ledger of_this_boot(Ledger ledger, const BootId& boot) {
  if (ledger.boot == boot) return ledger;
  ledger.last = std::max({ledger.last, ledger.limit, ledger.raised});
  ledger.limit = ledger.last;
  ledger.raised = ledger.last;
  ledger.boot = boot;
  return ledger;
}

}  // namespace

bool is_consistent(const Ledger& ledger) {
  return ledger.last <= ledger.limit && ledger.limit <= ledger.raised &&
         ledger.last <= kLastTicket && ledger.raised <= kLastTicket + 2 * kTicketsPerSync;
}

Ledger new_ledger(std::uint64_t above, const BootId& boot) {
  const auto limit = above + kTicketsPerSync;
  return {.last = above, .limit = limit, .raised = limit, .boot = boot};
}

NextTicket next_ticket(const Ledger& ledger, const BootId& boot, std::uint64_t min_token) {
  NextTicket next{.ledger = of_this_boot(ledger, boot)};
  const auto above = std::max(next.ledger.last, min_token);
  if (above >= kLastTicket) return next;
  if (above >= next.ledger.limit) {
    next.what = NextTicket::Action::raise;
    next.ledger.raised = std::max(next.ledger.raised, above + kTicketsPerSync);
    return next;
  }
  next.what = NextTicket::Action::issue;
  next.ticket = above + 1;
  next.ledger.last = next.ticket;
  next.raise_soon = is_time_to_raise(next.ticket, next.ledger.limit);
  if (next.raise_soon) {
    next.ledger.raised = std::max(next.ledger.raised, next.ledger.limit + kTicketsPerSync);
  }
  return next;
}

std::optional<Ledger> raised_above(const Ledger& ledger, const BootId& boot,
                                   std::uint64_t min_token) {
  auto above = of_this_boot(ledger, boot);
  above.last = std::max(above.last, min_token);
  if (above.last >= kLastTicket) return {};
  if (above.last >= above.limit) {
    above.limit = above.last + kTicketsPerSync;
    above.raised = std::max(above.raised, above.limit);
  }
  return above;
}

Ledger confirm(Ledger ledger, std::uint64_t raised) {
  ledger.limit = std::max(ledger.limit, std::min(raised, ledger.raised));
  return ledger;
}

}  // namespace dlock::local
