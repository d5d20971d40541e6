// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backends/local/rules/tickets.hpp"

namespace dlock::local {
namespace {

using Action = NextTicket::Action;

constexpr BootId kBoot{1};
constexpr BootId kNextBoot{2};

TEST(LocalTickets, RiseByOne) {
  auto ledger = new_ledger(100, kBoot);
  for (std::uint64_t ticket = 101; ticket < 110; ++ticket) {
    const auto next = next_ticket(ledger, kBoot, 0);
    ASSERT_EQ(next.what, Action::issue);
    EXPECT_EQ(next.ticket, ticket);
    EXPECT_FALSE(next.raise_soon);
    ledger = next.ledger;
  }
}

TEST(LocalTickets, AreNeverIssuedAboveTheLimit) {
  auto ledger = new_ledger(0, kBoot);
  ledger.last = ledger.limit;
  const auto next = next_ticket(ledger, kBoot, 0);
  ASSERT_EQ(next.what, Action::raise);
  EXPECT_EQ(next.ledger.limit, ledger.limit) << "not before it is on disk";
  EXPECT_EQ(next.ledger.raised, ledger.limit + kTicketsPerSync);
  EXPECT_EQ(next.ledger.last, ledger.last);

  const auto synced = confirm(next.ledger, next.ledger.raised);
  const auto then = next_ticket(synced, kBoot, 0);
  ASSERT_EQ(then.what, Action::issue);
  EXPECT_EQ(then.ticket, ledger.last + 1);
}

TEST(LocalTickets, TheLimitIsRaisedWellBeforeAnybodyMustWait) {
  auto ledger = new_ledger(0, kBoot);
  int chances = 0;
  std::uint64_t first_chance = 0;
  for (;;) {
    const auto next = next_ticket(ledger, kBoot, 0);
    if (next.what != Action::issue) break;
    if (next.raise_soon) {
      if (chances++ == 0) first_chance = next.ticket;
      EXPECT_EQ(next.ledger.raised, next.ledger.limit + kTicketsPerSync);
    }
    ledger = next.ledger;
  }
  EXPECT_EQ(ledger.last, kTicketsPerSync);
  EXPECT_EQ(chances, 3);
  EXPECT_EQ(first_chance, kTicketsPerSync / 2);
}

TEST(LocalTickets, OneSyncIsGoodForManyTickets) {
  auto ledger = new_ledger(0, kBoot);
  std::uint64_t syncs = 0;
  for (std::uint64_t i = 0; i < 10 * kTicketsPerSync; ++i) {
    auto next = next_ticket(ledger, kBoot, 0);
    ASSERT_EQ(next.what, Action::issue) << "nobody ever waits when each raise is carried out";
    ledger = next.ledger;
    if (next.raise_soon) {
      ++syncs;
      ledger = confirm(ledger, ledger.raised);
    }
  }
  EXPECT_LE(syncs, 10U);
}

// What reaches the disk is any state since the last sync. Whichever it was, no ticket comes twice.
TEST(LocalTickets, NoTicketComesTwiceAfterAPowerCut) {
  auto ledger = new_ledger(7, kBoot);
  auto synced = ledger;
  std::uint64_t highest = 0;
  for (std::uint64_t i = 0; i < 3 * kTicketsPerSync; ++i) {
    auto next = next_ticket(ledger, kBoot, 0);
    if (next.what == Action::raise) {
      synced = next.ledger;
      ledger = confirm(next.ledger, next.ledger.raised);
      continue;
    }
    ledger = next.ledger;
    highest = next.ticket;
    if (i % 1009 != 0) continue;
    for (const auto& survivor : {synced, ledger}) {
      auto after = next_ticket(survivor, kNextBoot, 0);
      ASSERT_EQ(after.what, Action::raise);
      after = next_ticket(confirm(after.ledger, after.ledger.raised), kNextBoot, 0);
      ASSERT_EQ(after.what, Action::issue);
      ASSERT_GT(after.ticket, highest);
    }
  }
}

TEST(LocalTickets, ANewBootStartsAboveAllMarks) {
  Ledger ledger{.last = 10, .limit = 100, .raised = 200, .boot = kBoot};
  const auto next = next_ticket(ledger, kNextBoot, 0);
  ASSERT_EQ(next.what, Action::raise);
  EXPECT_EQ(next.ledger.boot, kNextBoot);
  EXPECT_EQ(next.ledger.last, 200U);
  EXPECT_EQ(next.ledger.limit, 200U) << "nothing may be issued before the sync";
  EXPECT_TRUE(is_consistent(next.ledger));
  // A second one that comes before the first has confirmed must wait for the sync too.
  EXPECT_EQ(next_ticket(next.ledger, kNextBoot, 0).what, Action::raise);
}

TEST(LocalTickets, ConfirmingAnOldValueNeverLowersTheLimit) {
  const Ledger ledger{.last = 10, .limit = 300, .raised = 300, .boot = kBoot};
  EXPECT_EQ(confirm(ledger, 200), ledger);
  EXPECT_EQ(confirm(ledger, 400), ledger) << "nor goes beyond what was written";
}

TEST(LocalTickets, StartAboveTheTokenAskedFor) {
  const auto ledger = new_ledger(10, kBoot);
  EXPECT_EQ(next_ticket(ledger, kBoot, 5).ticket, 11U);
  EXPECT_EQ(next_ticket(ledger, kBoot, 1000).ticket, 1001U);

  const auto far = next_ticket(ledger, kBoot, 1'000'000);
  ASSERT_EQ(far.what, Action::raise);
  const auto next = next_ticket(confirm(far.ledger, far.ledger.raised), kBoot, 1'000'000);
  ASSERT_EQ(next.what, Action::issue);
  EXPECT_EQ(next.ticket, 1'000'001U);
}

TEST(LocalTickets, EndAtTheLastExactNumber) {
  Ledger ledger{
      .last = kLastTicket - 1, .limit = kLastTicket, .raised = kLastTicket, .boot = kBoot};
  auto next = next_ticket(ledger, kBoot, 0);
  ASSERT_EQ(next.what, Action::issue);
  EXPECT_EQ(next.ticket, kLastTicket);
  EXPECT_EQ(next_ticket(next.ledger, kBoot, 0).what, Action::refuse);
  EXPECT_EQ(next_ticket(ledger, kBoot, kLastTicket).what, Action::refuse);
  EXPECT_EQ(next_ticket(ledger, kNextBoot, 0).what, Action::refuse);
}

TEST(LocalTickets, RaisedAboveAFloorTheyGoOnFromThere) {
  const BootId boot{1};
  const auto ledger = new_ledger(5, boot);
  for (const auto above : {std::uint64_t{3}, std::uint64_t{70'000}, kLastTicket - 1}) {
    const auto raised = raised_above(ledger, boot, above);
    ASSERT_TRUE(raised) << above;
    EXPECT_TRUE(is_consistent(*raised));
    const auto next = next_ticket(*raised, boot, 0);
    ASSERT_EQ(next.what, NextTicket::Action::issue);
    EXPECT_EQ(next.ticket, std::max<std::uint64_t>(above, 5) + 1);
  }
  EXPECT_FALSE(raised_above(ledger, boot, kLastTicket));
  // What another boot may have lost is above the marks, too.
  EXPECT_GE(raised_above(ledger, BootId{2}, 3)->last, ledger.raised);
}

TEST(LocalTickets, InconsistentLedgersAreNoticed) {
  EXPECT_TRUE(is_consistent(new_ledger(0, kBoot)));
  EXPECT_FALSE(is_consistent({.last = 2, .limit = 1, .raised = 3, .boot = kBoot}));
  EXPECT_FALSE(is_consistent({.last = 1, .limit = 3, .raised = 2, .boot = kBoot}));
  EXPECT_FALSE(is_consistent({.last = ~std::uint64_t{0},
                              .limit = ~std::uint64_t{0},
                              .raised = ~std::uint64_t{0},
                              .boot = kBoot}));
}

}  // namespace
}  // namespace dlock::local
