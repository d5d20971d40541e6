// SPDX-License-Identifier: Apache-2.0
//
// The text of a leased gate, its turns, and how long readings count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dlock/sequencer.hpp"
#include "migration/leased/leased_gate.hpp"

namespace dlock::core::migration {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

LeasedGate gate_in(LeasedState state) {
  LeasedGate gate;
  gate.state = state;
  gate.version = 7;
  gate.from = "redis";
  gate.to = "zk";
  gate.floor = 5;
  gate.ceiling = 9'000;
  gate.lease = seconds(10);
  gate.plan = "billing-2026";
  gate.plan_id = "0123456789abcdef";
  gate.born = "fedcba9876543210";
  gate.since_ms = 1'763'770'000'000;
  return gate;
}

TEST(LeasedGate, IsReadAsItWasWritten) {
  for (const auto state :
       {LeasedState::source, LeasedState::source_then_target, LeasedState::target,
        LeasedState::target_then_source, LeasedState::final_, LeasedState::ended}) {
    const auto gate = gate_in(state);
    EXPECT_EQ(parse_leased_gate(to_text(gate)), gate);
  }
  EXPECT_EQ(to_text(gate_in(LeasedState::source_then_target)),
            "dlock-leased1 S_THEN_T ver=7 from=redis to=zk floor=5 ceiling=9000 lease_ms=10000 "
            "plan=billing-2026 id=0123456789abcdef born=fedcba9876543210 since_ms=1763770000000");
}

TEST(LeasedGate, RefusesOtherTexts) {
  const auto good = to_text(gate_in(LeasedState::source));
  const std::pair<const char*, const char*> changes[] = {
      {"dlock-leased1", "dlock-leased2"},
      {"dlock-leased1", "dlock-gate1"},
      {"S_ALONE", "OPEN"},
      {"ver=7", "ver=07"},
      {"lease_ms=10000", "lease_ms=499"},
      {"lease_ms=10000", "lease_ms=600001"},
      {"id=0123456789abcdef", "id=x"},
      {"born=fedcba9876543210", "born="},
      {"from=redis", "from=a b"},
      {"ceiling=9000", "ceiling=9007199254740992"},
      {"plan=billing-2026", "plan="},
      {"since_ms=1763770000000", "since_ms=1763770000000 x=1"}};
  for (const auto& [from, to] : changes) {
    auto text = good;
    text.replace(text.find(from), std::string(from).size(), to);
    std::string why;
    EXPECT_FALSE(parse_leased_gate(text, &why)) << text;
    EXPECT_NE(why, "") << text;
  }
  std::string why;
  auto newer = good;
  newer.replace(newer.find("leased1"), 7, "leased2");
  parse_leased_gate(newer, &why);
  EXPECT_THAT(why, testing::HasSubstr("format 2"));
}

TEST(LeasedGate, OnlyATurnToTheOtherStoreRaisesTheFloor) {
  const std::pair<LeasedState, LeasedState> same[] = {
      {LeasedState::source, LeasedState::source_then_target},
      {LeasedState::source_then_target, LeasedState::source},
      {LeasedState::target, LeasedState::target_then_source},
      {LeasedState::target_then_source, LeasedState::target},
      {LeasedState::target, LeasedState::final_},
      {LeasedState::source, LeasedState::ended}};
  for (const auto& [from, to] : same) {
    const auto next = turned_to(gate_in(from), to, 1);
    EXPECT_EQ(next->floor, 5U);
    EXPECT_EQ(next->ceiling, 9'000U);
    EXPECT_EQ(next->version, 8U);
    EXPECT_EQ(next->state, to);
    EXPECT_EQ(next->since_ms, 1);
  }
  constexpr std::uint64_t kHour = 3'600'000'000;
  for (const auto& [from, to] : {std::pair{LeasedState::source_then_target, LeasedState::target},
                                 std::pair{LeasedState::target_then_source, LeasedState::source}}) {
    EXPECT_EQ(turned_to(gate_in(from), to, 1)->floor, kHour + 1'000);
    auto high = gate_in(from);
    high.ceiling = 2 * kHour;
    const auto next = turned_to(high, to, 1);
    EXPECT_EQ(next->floor, 2 * kHour);
    EXPECT_EQ(next->ceiling, 2 * kHour + (std::uint64_t{1} << 36U));
    high.ceiling = kTokenEnd - 1;
    EXPECT_FALSE(turned_to(high, to, 1)) << "no token is left";
  }
}

TEST(LeasedGate, TheCeilingIsRaisedSeldom) {
  const auto gate = gate_in(LeasedState::source);
  EXPECT_EQ(with_room_for(gate, 9'000), gate);
  const auto raised = with_room_for(gate, 9'001);
  EXPECT_EQ(raised.ceiling, 9'001 + (std::uint64_t{1} << 36U));
  EXPECT_EQ(raised.version, gate.version) << "whoever waits for the version waits no longer";
  EXPECT_EQ(with_room_for(gate, kTokenEnd - 2).ceiling, kTokenEnd - 1);
}

TEST(LeasedGate, AReadingCountsLessThanTheWaitOfATurn) {
  for (const milliseconds lease : {kShortestGateLease, kDefaultGateLease, kLongestGateLease}) {
    const TimePoint sent{seconds(100)};
    const auto counts = counts_until(sent, lease) - sent;
    EXPECT_LE(counts, lease * 95 / 100);
    EXPECT_GE(counts, lease * 90 / 100);
    EXPECT_GE(turn_wait(lease), lease * 105 / 100);
  }
}

}  // namespace
}  // namespace dlock::core::migration
