// SPDX-License-Identifier: Apache-2.0
//
// The texts of a migration: any other text is refused, and never leads to a grant.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dlock/sequencer.hpp"
#include "migration/eligibility.hpp"
#include "migration/gate.hpp"
#include "migration/leased/leased_gate.hpp"
#include "migration/move/steps.hpp"
#include "migration/plan.hpp"
#include "migration/policy/sealed.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {
namespace {

using std::chrono::milliseconds;

Record some_record() {
  Record record;
  record.state = MoveState::moved;
  record.gen = {17, 3};
  record.target = "redis";
  record.floor = 17;
  record.max_lease = milliseconds(30000);
  record.plan = "billing-2026";
  record.plan_id = "0123456789abcdef";
  record.since_ms = 1763770000000;
  return record;
}

Plan some_plan() {
  Plan plan;
  plan.name = "billing-2026";
  plan.id = "0123456789abcdef";
  plan.from = "zk";
  plan.to = "redis";
  plan.max_lease = milliseconds(30000);
  plan.patterns = {"billing/1", "billing/a b", "orders/**"};
  return plan;
}

TEST(MigrationRecord, IsReadBackAsItWasWritten) {
  for (const auto state : {MoveState::moved, MoveState::closing, MoveState::final_}) {
    auto record = some_record();
    record.state = state;
    EXPECT_EQ(parse_record(to_text(record)), record);
  }
  EXPECT_EQ(to_text(some_record()),
            "dlock-move1 MOVED gen=17.3 target=redis floor=17 max_lease_ms=30000 "
            "plan=billing-2026 id=0123456789abcdef since_ms=1763770000000");
}

TEST(MigrationRecord, AnythingElseIsNone) {
  const auto good = to_text(some_record());
  const auto with = [&](const std::string& what, const std::string& instead) {
    auto text = good;
    text.replace(text.find(what), what.size(), instead);
    return text;
  };
  for (const auto& text :
       std::vector<std::string>{"",
                                " ",
                                "dlock-move1",
                                good + " ",
                                good + "\n",
                                " " + good,
                                good + " x=1",
                                with("dlock-move1", "dlock-move2"),
                                with("MOVED", "OPEN"),
                                with("MOVED", "moved"),
                                with("gen=17.3", "gen=17"),
                                with("gen=17.3", "gen=17."),
                                with("gen=17.3", "gen=.3"),
                                with("gen=17.3", "gen=017.3"),
                                with("floor=17", "floor=-1"),
                                with("floor=17", "floor=9007199254740992"),
                                with("floor=17", "floor=0x11"),
                                with("target=redis", "target="),
                                with("target=redis", "target=a/b"),
                                with("target=redis", "target=.."),
                                with("id=0123456789abcdef", "id=0123456789ABCDEF"),
                                with("id=0123456789abcdef", "id=1"),
                                with("plan=billing-2026", "plan=a b"),
                                with("floor=17 ", ""),
                                good.substr(0, good.size() - 20),
                                std::string(5000, 'x')}) {
    std::string why;
    EXPECT_FALSE(parse_record(text, &why)) << text;
    EXPECT_FALSE(why.empty()) << text;
  }
}

TEST(MigrationRecord, EachChangeIsAnotherGeneration) {
  const auto record = some_record();
  const auto next = next_record(record, MoveState::closing, 5);
  EXPECT_NE(next.gen, record.gen);
  EXPECT_EQ(next.gen.flip, record.gen.flip);
  EXPECT_EQ(next.state, MoveState::closing);
  EXPECT_NE(next_record(next, MoveState::moved, 6).gen, record.gen);
  EXPECT_EQ(next.gen.counter, record.gen.counter + 1);
  EXPECT_EQ(next.since_ms, 5);
  EXPECT_EQ(next_record(record, MoveState::closing, -5).since_ms, 0);
}

TEST(MigrationPlan, IsReadBackAsItWasWritten) {
  const auto plan = some_plan();
  EXPECT_EQ(parse_plan(to_text(plan)), plan);
  EXPECT_TRUE(plan.has("billing/1")) << "an exact name is a pattern without wildcards";
  EXPECT_FALSE(plan.has("billing"));
  EXPECT_TRUE(plan.has("orders/1/2"));
  EXPECT_FALSE(plan.is_leased());
  EXPECT_EQ(to_text(plan),
            "dlock-plan4\nname=billing-2026\nid=0123456789abcdef\nfrom=zk\nto=redis\n"
            "max_lease_ms=30000\nlossy_target=0\nleased_target=1\nfloor=0\ngate=\nlease_ms=0\n"
            "patterns=3\nbilling/1\nbilling/a b\norders/**");
  auto with_gate = plan;
  with_gate.gate = "redis";
  with_gate.lease = milliseconds(10000);
  with_gate.floor = 17;
  EXPECT_TRUE(with_gate.is_leased());
  EXPECT_EQ(parse_plan(to_text(with_gate)), with_gate);
  EXPECT_NE(to_text(with_gate).find("\ngate=redis\nlease_ms=10000\n"), std::string::npos);
}

TEST(MigrationPlan, ItsRouteNamesTheGate) {
  auto plan = some_plan();
  EXPECT_EQ(route_line("orders/**", plan),
            "- { match: \"orders/**\", migrate: { from: zk, to: redis, plan: billing-2026 } }");
  plan.gate = "redis";
  EXPECT_EQ(route_line("orders/**", plan),
            "- { match: \"orders/**\", migrate: { from: zk, to: redis, plan: billing-2026, gate: "
            "redis } }");
}

TEST(MigrationPlan, ATextOfAnotherVersionIsRefused) {
  const auto why_not = [](const std::string& text) {
    std::string why;
    EXPECT_FALSE(parse_plan(text, &why)) << text;
    return why;
  };
  const std::string rest =
      "\nname=p\nid=0123456789abcdef\nfrom=s\nto=t\nmax_lease_ms=0\nlossy_target=0\n"
      "leased_target=0\nfloor=0\npatterns=1\na\nnames=0";
  for (const std::string stamp : {"dlock-plan1", "dlock-plan2", "dlock-plan3"}) {
    EXPECT_EQ(why_not(stamp + rest),
              "it does not begin with 'dlock-plan4': it is not a plan, or another version of dlock "
              "wrote it");
  }
  auto without_patterns = some_plan();
  without_patterns.patterns.clear();
  EXPECT_EQ(why_not(to_text(without_patterns)),
            "it has no patterns: another version of dlock wrote it");
}

TEST(MigrationPlan, AnythingElseIsNone) {
  const auto good = to_text(some_plan());
  auto unsorted = some_plan();
  std::swap(unsorted.patterns[0], unsorted.patterns[1]);
  auto bad_pattern = some_plan();
  bad_pattern.patterns[0] = "a//b";
  auto bad_gate = some_plan();
  bad_gate.gate = "a b";
  const auto with = [&](const std::string& what, const std::string& instead) {
    auto text = good;
    text.replace(text.find(what), what.size(), instead);
    return text;
  };
  for (const auto& text :
       {std::string(), good + "\n", good + "\nbilling/c", good.substr(0, good.size() - 12),
        to_text(unsorted), to_text(bad_gate), to_text(bad_pattern), "x" + good, with("\ngate=", ""),
        with("lease_ms=0\npatterns", "patterns"), with("\nlease_ms=0", "\nlease_ms=-1"),
        with("floor=0", "floor=9007199254740992")}) {
    std::string why;
    EXPECT_FALSE(parse_plan(text, &why)) << text;
    EXPECT_FALSE(why.empty()) << text;
  }
}

TEST(MigrationTexts, ANewerFormatIsRefusedWithBoth) {
  const auto refused = [](const auto& parse, const std::string& text) {
    std::string why;
    EXPECT_FALSE(parse(text, &why)) << text;
    return why;
  };
  const auto newer = [](unsigned known) {
    return fmt::format("it has format 9; this program reads format {}; upgrade it", known);
  };
  EXPECT_EQ(refused(parse_record, "dlock-move9 x"), newer(1));
  EXPECT_EQ(refused(parse_gate, "dlock-gate9 x"), newer(1));
  EXPECT_EQ(refused(parse_leased_gate, "dlock-leased9 x"), newer(1));
  EXPECT_EQ(refused(parse_plan, "dlock-plan9\nx"), newer(4));
  EXPECT_EQ(refused(parse_list, "dlock-plans9\nx"), newer(1));
  EXPECT_EQ(refused(parse_record, "mine"), "it does not begin with 'dlock-move1'");
  EXPECT_EQ(refused(parse_list, "p1"), "it does not begin with 'dlock-plans1'");
}

TEST(MigrationPlan, ListsAreSortedAndDistinct) {
  EXPECT_EQ(list_text({"b", "a", "b"}), "dlock-plans1\na\nb");
  EXPECT_EQ(list_text({}), "");
  EXPECT_EQ(parse_list("dlock-plans1\nb\n\na\nb"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parse_list(""), std::vector<std::string>());
  EXPECT_EQ(parse_list("dlock-plans1"), std::vector<std::string>());
  EXPECT_EQ(with_entry({"a"}, "a"), std::vector<std::string>{"a"});
  EXPECT_TRUE(without_entry({"a"}, "a").empty());
}

TEST(MigrationSteps, EachStateAndGoal) {
  const auto plan = some_plan();
  const auto at = [](MoveState state) {
    auto record = some_record();
    record.state = state;
    return std::optional(record);
  };
  const std::optional<Record> open;
  const auto action = [&](Goal goal, const std::optional<Record>& record) {
    return decide(goal, record, plan).action;
  };
  EXPECT_EQ(action(Goal::advance, open), Action::seal);
  EXPECT_EQ(action(Goal::advance, at(MoveState::moved)), Action::nothing);
  EXPECT_EQ(action(Goal::advance, at(MoveState::closing)), Action::abort);
  EXPECT_EQ(action(Goal::rollback, open), Action::nothing);
  EXPECT_EQ(action(Goal::rollback, at(MoveState::moved)), Action::close);
  EXPECT_EQ(action(Goal::rollback, at(MoveState::closing)), Action::open);
  for (const auto goal : {Goal::advance, Goal::rollback}) {
    EXPECT_EQ(action(goal, at(MoveState::final_)), Action::refuse) << "no plan writes that";
  }
}

TEST(MigrationSteps, AnothersRecordIsLeftAlone) {
  for (auto change : {+[](Record& r) { r.plan = "other"; }, +[](Record& r) { r.target = "x"; },
                      +[](Record& r) { r.plan_id = "00000000000000ff"; }}) {
    auto record = some_record();
    change(record);
    for (const auto goal : {Goal::advance, Goal::rollback}) {
      const auto decision = decide(goal, record, some_plan());
      EXPECT_EQ(decision.action, Action::refuse);
      EXPECT_FALSE(decision.why.empty());
    }
  }
}

TEST(MigrationSteps, ABlindFloorIsAboveWhatAClockSeededStoreCanHaveGiven) {
  const std::int64_t now_ms = 1'763'770'000'000;
  const auto clock_us = static_cast<std::uint64_t>(now_ms) * 1000;
  EXPECT_GT(blind_floor(17, now_ms), clock_us + (std::uint64_t{1} << 47U));
  EXPECT_EQ(blind_floor(clock_us * 2, now_ms), clock_us * 2 + (std::uint64_t{1} << 48U));
  EXPECT_FALSE(blind_floor(kTokenEnd - 1, now_ms));
}

Capabilities durable() {
  Capabilities capabilities;
  capabilities.can_seal = true;
  capabilities.can_gate = true;
  capabilities.can_raise = true;
  capabilities.token = TokenStrength::durable;
  capabilities.lease_scope = LeaseScope::session;
  capabilities.lease = milliseconds(10000);
  return capabilities;
}

TEST(MigrationEnds, OnlyAStoreThatKeepsRecordsMayBeLeft) {
  const End keeps{"zk", durable(), {}};
  auto forgets = durable();
  forgets.record_losses = {{"appendonly is no", "set appendfsync to always"}};
  const End lossy{"redis", forgets, {}};
  EXPECT_TRUE(objections(keeps, lossy).empty());
  const auto refused = objections(lossy, keeps);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_NE(refused[0].find("appendonly is no; set appendfsync to always"), std::string::npos);
  auto no_seal = durable();
  no_seal.can_seal = false;
  EXPECT_FALSE(objections({"cache", no_seal, {}}, keeps).empty());
  auto no_raise = durable();
  no_raise.can_raise = false;
  EXPECT_FALSE(objections(keeps, {"x", no_raise, {}}).empty());
  auto no_token = durable();
  no_token.token = TokenStrength::none;
  EXPECT_FALSE(objections(keeps, {"x", no_token, {}}).empty());
}

TEST(MigrationEnds, TheTargetDecidesOnLeaseAndLoss) {
  Plan plan;
  describe_target(plan, {"zk", durable(), {}}, {});
  EXPECT_EQ(plan.max_lease, milliseconds(10000));
  EXPECT_FALSE(plan.lossy_target);
  EXPECT_TRUE(plan.leased_target);
  auto cache = durable();
  cache.can_seal = false;
  cache.lease_scope = LeaseScope::claim;
  describe_target(plan, {"cache", cache, milliseconds(7000)}, {});
  EXPECT_TRUE(plan.lossy_target);
  EXPECT_EQ(plan.max_lease, milliseconds(7000));
  describe_target(plan, {"cache", cache, milliseconds(7000)}, milliseconds(20000));
  EXPECT_EQ(plan.max_lease, milliseconds(20000));
  auto local = durable();
  local.lease_scope = LeaseScope::none;
  describe_target(plan, {"local", local, {}}, {});
  EXPECT_FALSE(plan.leased_target);
  EXPECT_EQ(plan.max_lease, milliseconds(0));
}

TEST(MigrationSealed, TellsAPlainClientWhatToWrite) {
  const auto failure = sealed_failure(to_text(some_record()), "billing/1", "zk", false);
  EXPECT_EQ(failure.error, errc::moving);
  EXPECT_NE(failure.text.find("plan 'billing-2026'"), std::string::npos) << failure.text;
  EXPECT_NE(failure.text.find("- { match: \"billing/1\", migrate: { from: zk, to: redis, plan: "
                              "billing-2026 } }"),
            std::string::npos)
      << failure.text;
  EXPECT_EQ(sealed_failure("rubbish", "billing/1", "zk", false).error, errc::protocol);
}

TEST(Plan, ListsNoMoreThanItsNamesBeginWith) {
  const auto prefix = [](std::vector<std::string> patterns) {
    Plan plan;
    plan.patterns = std::move(patterns);
    return plan.prefix();
  };
  EXPECT_EQ(prefix({"a/b/**"}), "a/b");
  EXPECT_EQ(prefix({"a/b*"}), "a") << "whole parts only";
  EXPECT_EQ(prefix({"a/*/c"}), "a");
  EXPECT_EQ(prefix({"**"}), "");
  EXPECT_EQ(prefix({"a/b/**", "a/b/c/*"}), "a/b");
  EXPECT_EQ(prefix({"a/b/**", "a/c"}), "a");
  EXPECT_EQ(prefix({"a/b/**", "b"}), "");
  EXPECT_EQ(prefix({"a/b"}), "a/b");
  EXPECT_EQ(prefix({}), "");
}

}  // namespace
}  // namespace dlock::core::migration
