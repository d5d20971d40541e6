// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator of mode dual does next, and whether a plan can be at all.
#include <gtest/gtest.h>

#include "migration/dual/dual_steps.hpp"

namespace dlock::core::migration {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Window at(int lo, int hi) {
  Window window;
  window.plan = "p";
  window.from = "s";
  window.to = "t";
  window.lo = lo;
  window.hi = hi;
  return window;
}

std::vector<std::pair<int, int>> way(Goal goal, Window window) {
  std::vector<std::pair<int, int>> all{{window.lo, window.hi}};
  for (int i = 0; i < 10; ++i) {
    const auto decision = decide(goal, window);
    if (decision.action == WindowAction::nothing) return all;
    const auto ver = window.ver;
    window = stepped(window, decision.action, 0, {}, 1);
    EXPECT_EQ(window.ver, ver + 1);
    all.emplace_back(window.lo, window.hi);
  }
  return all;
}

TEST(DualSteps, ForwardAndBackGoThroughAllPhases) {
  const std::vector<std::pair<int, int>> forward{{0, 0}, {0, 1}, {1, 1}, {1, 2}, {2, 2}};
  EXPECT_EQ(way(Goal::advance, at(0, 0)), forward);
  EXPECT_EQ(way(Goal::rollback, at(2, 2)),
            (std::vector<std::pair<int, int>>(forward.rbegin(), forward.rend())));
}

TEST(DualSteps, BackFromAnywhere) {
  EXPECT_EQ(way(Goal::rollback, at(0, 1)), (std::vector<std::pair<int, int>>{{0, 1}, {0, 0}}));
  EXPECT_EQ(way(Goal::rollback, at(1, 2)),
            (std::vector<std::pair<int, int>>{{1, 2}, {1, 1}, {0, 1}, {0, 0}}));
  EXPECT_EQ(way(Goal::advance, at(0, 1)).size(), 4U);
}

TEST(DualSteps, FinishIsFromTheLastPhaseAndForGood) {
  EXPECT_EQ(decide(Goal::finish, at(1, 2)).action, WindowAction::refuse);
  EXPECT_EQ(decide(Goal::finish, at(2, 2)).action, WindowAction::finish);
  const auto finished = stepped(at(2, 2), WindowAction::finish, 0, {}, 1);
  EXPECT_TRUE(finished.finished);
  EXPECT_EQ(decide(Goal::finish, finished).action, WindowAction::nothing);
  EXPECT_EQ(decide(Goal::advance, finished).action, WindowAction::nothing);
  EXPECT_EQ(decide(Goal::rollback, finished).action, WindowAction::refuse);
}

TEST(DualSteps, OnlyOpeningWhatLegacyDoesNotMeetNeedsItGone) {
  EXPECT_FALSE(needs_legacy_gone(WindowAction::open_above, at(0, 0)));
  EXPECT_TRUE(needs_legacy_gone(WindowAction::open_above, at(1, 1)));
  EXPECT_TRUE(needs_legacy_gone(WindowAction::open_below, at(1, 1)));
  EXPECT_FALSE(needs_legacy_gone(WindowAction::open_below, at(2, 2)));
  EXPECT_FALSE(needs_legacy_gone(WindowAction::close_below, at(1, 2)));
}

TEST(DualSteps, AnOpeningRaisesTheFloorAboveAllThatIsKnown) {
  auto window = at(1, 1);
  window.floor = 10;
  window.top = 20;
  window.programs.push_back({"00000000-0001", 1, 0, 30, 1, "h", "a"});
  EXPECT_EQ(stepped(window, WindowAction::open_above, 25, {}, 1).floor, 30U);
  EXPECT_EQ(stepped(window, WindowAction::open_below, 99, {}, 1).floor, 99U);
  EXPECT_EQ(stepped(window, WindowAction::open_above, 0, {"00000000-0001"}, 1).floor, 30U);
  EXPECT_EQ(stepped(at(0, 1), WindowAction::close_below, 99, {}, 1).floor, 0U);
}

TEST(DualSteps, ARestoredWindowsFloorIsAboveWhatNobodyKnowsOfAnyMore) {
  Plan plan;
  plan.names = {"a"};
  EXPECT_EQ(restored_floor(plan, 17, 1), 17U);
  plan.patterns = {"more/**"};
  EXPECT_GT(*restored_floor(plan, 17, 1), std::uint64_t{1} << 48U);
  EXPECT_FALSE(restored_floor(plan, (std::uint64_t{1} << 53U) - 2, 1));
}

TEST(DualSteps, WhoIsOverIsTakenAway) {
  auto window = at(1, 1);
  window.programs.push_back({"00000000-0001", 0, 0, 30, 1, "h", "a"});
  window.programs.push_back({"00000000-0002", 1, 0, 0, 1, "h", "a"});
  const auto next = stepped(window, WindowAction::open_above, 0, {"00000000-0001"}, 1);
  ASSERT_EQ(next.programs.size(), 1U);
  EXPECT_EQ(next.programs.front().id, "00000000-0002");
  EXPECT_GT(next.seq, window.seq + 1);
}

TEST(DualSteps, TheQuietPeriodIsTwiceTheLongestLease) {
  Plan plan;
  EXPECT_EQ(quiet_period(plan), Duration(seconds(1)));
  plan.max_lease = seconds(30);
  EXPECT_EQ(quiet_period(plan), Duration(seconds(60)));
}

End end(const std::string& name, bool forgets) {
  End made;
  made.name = name;
  made.capabilities.token = TokenStrength::durable;
  made.capabilities.can_raise = true;
  made.capabilities.can_seal = true;
  made.capabilities.lease_scope = LeaseScope::claim;
  made.capabilities.lease = seconds(10);
  if (forgets) made.capabilities.record_losses = {{"it forgets", "set appendfsync always"}};
  return made;
}

TEST(DualSteps, ALossySourceMayBeLeftAndTheWindowMustNotBeLost) {
  const auto lossy = end("cache", true);
  const auto durable = end("zk", false);
  EXPECT_TRUE(dual_objections(lossy, durable, durable).empty());
  EXPECT_TRUE(dual_objections(lossy, lossy, durable).empty());
  const auto objected = dual_objections(lossy, lossy, lossy);
  ASSERT_EQ(objected.size(), 1U);
  EXPECT_NE(objected.front().find("write `window: STORE`"), std::string::npos);
  EXPECT_NE(objected.front().find("set appendfsync always"), std::string::npos);
}

TEST(DualSteps, BothEndsMustGiveTokensAndRaiseThem) {
  auto from = end("s", false);
  auto to = end("t", false);
  from.capabilities.can_raise = false;
  to.capabilities.token = TokenStrength::none;
  EXPECT_EQ(dual_objections(from, to, end("w", false)).size(), 2U);
}

TEST(DualSteps, TheLongestLeaseOfBothEndsCounts) {
  auto from = end("s", false);
  auto to = end("t", false);
  from.lease = seconds(30);
  Plan plan;
  describe_dual(plan, from, to, std::nullopt, std::nullopt);
  EXPECT_EQ(plan.mode, MigrateMode::dual);
  EXPECT_EQ(plan.max_lease, seconds(30));
  EXPECT_EQ(plan.registration, kDefaultRegistration);
  describe_dual(plan, from, to, milliseconds(5000), milliseconds(1));
  EXPECT_EQ(plan.max_lease, seconds(5));
  EXPECT_EQ(plan.registration, kShortestRegistration);
}

Plan plan_of_dual() {
  Plan plan;
  plan.name = "p";
  plan.id = "0123456789abcdef";
  plan.from = "s";
  plan.to = "t";
  plan.mode = MigrateMode::dual;
  plan.window = "w";
  plan.registration = seconds(3);
  plan.patterns = {"billing/**", "orders/*"};
  plan.names = {"a", "b"};
  return plan;
}

TEST(DualPlan, ATextIsReadBackAsItWas) {
  const auto plan = plan_of_dual();
  std::string why;
  EXPECT_EQ(parse_plan(to_text(plan), &why), plan) << why;
  const auto text = to_text(plan);
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(parse_plan(text.substr(0, length))) << length;
  }
}

TEST(DualPlan, NamesThatAreMadeLaterBelongToItByAPattern) {
  const auto plan = plan_of_dual();
  EXPECT_TRUE(plan.has("a"));
  EXPECT_TRUE(plan.has("billing/7"));
  EXPECT_FALSE(plan.has("c"));
}

TEST(DualPlan, TwoPlansMayNotHaveALockInCommon) {
  const auto plan = plan_of_dual();
  Plan other;
  other.names = {"c"};
  EXPECT_FALSE(common_names(plan, other));
  other.names = {"orders/1"};
  EXPECT_EQ(common_names(plan, other), "orders/1");
  other.names.clear();
  other.patterns = {"**"};
  EXPECT_TRUE(common_names(plan, other));
  other.patterns = {"stock/**"};
  EXPECT_FALSE(common_names(plan, other));
}

}  // namespace
}  // namespace dlock::core::migration
