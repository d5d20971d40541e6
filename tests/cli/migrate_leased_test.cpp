// SPDX-License-Identifier: Apache-2.0
//
// `dlock migrate` with `gate:` in the route, mostly over local stores: every verb, every exit
// status, and what programs meet meanwhile.
#include <algorithm>
#include <csignal>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "migration/leased/leased_gate.hpp"
#include "testkit/servers/memcached.hpp"
#include "tests/cli/migrate_stores.hpp"
#include "tests/support/direct_client.hpp"

namespace dlock::cli_test {
namespace {

using core::migration::leased_key;
using testkit::eventually;
using testkit::Process;
using Words = std::vector<std::string>;

/// Turns of the gate take half a second.
class LeasedCli : public CliMigrate {
 protected:
  LeasedCli() { write("dlock.yaml", leased_route("p")); }

  static std::string leased_route(const std::string& plan, const std::string& from = "old",
                                  const std::string& to = "new", const std::string& gate = "new") {
    return "{ match: \"billing/**\", migrate: { from: " + from + ", to: " + to + ", plan: " + plan +
           ", gate: " + gate + " } }";
  }
  void start(const std::string& gate_lease = "500ms") const {
    expect(0, {"start", "p", "--gate-lease", gate_lease}, "locks are acquired in 'old'");
    EXPECT_EQ(gate(), "S_ALONE");
  }
  void advance_to_target() const {
    expect(0, {"advance", "p", "--legacy-gone"}, "locks are acquired in 'new'");
    EXPECT_EQ(gate(), "T_ALONE");
  }
  void run_plan(const std::string& file, const std::string& plan) const {
    expect_with(file, 0, {"start", plan, "--gate-lease", "500ms"});
    expect_with(file, 0, {"advance", plan, "--legacy-gone"});
    expect_with(file, 0, {"finish", plan}, "is finished");
  }
  bool is_in(const std::string& store) const { return is_held(url(store), "billing/1"); }
  bool has_note(const std::string& store, const std::string& key) const {
    testkit::DirectClient client(url(store));
    return client.note(key).found.has_value();
  }
  void lose_gate() const {
    testkit::DirectClient client(url("new"));
    const auto note = client.note(leased_key("p")).found;
    ASSERT_TRUE(note);
    ASSERT_EQ(client.set_note(leased_key("p"), note, std::nullopt).status, RecordStatus::done);
  }
};

TEST_F(LeasedCli, TokensRiseFromPlanToFinish) {
  expect(0, {"plan", "p"}, "plan p: from 'old' to 'new', gate in 'new'");
  start();
  expect(0, {"start", "p"}, "locks are acquired in 'old'");
  std::int64_t last = 0;
  const auto expect_token_above = [&](const std::string& file) {
    const auto next = token(file, "billing/1");
    EXPECT_GT(next, last) << gate();
    last = next;
  };
  expect_token_above("dlock.yaml");
  expect(kWaits, {"advance", "p"}, "run `dlock migrate advance p --legacy-gone`");
  EXPECT_EQ(gate(), "S_THEN_T");
  expect_token_above("dlock.yaml");
  expect(kRefused, {"finish", "p"}, "run `dlock migrate advance p --legacy-gone` first");
  advance_to_target();
  expect_token_above("dlock.yaml");
  expect(0, {"finish", "p", "--all"}, "plan p is finished: its locks are at home in 'new'");
  expect_token_above("dlock.yaml");
  expect_token_above("new.yaml");
  expect(0, {"finish", "p"}, "plan p is finished");
  expect(0, {"advance", "p"}, "locks are acquired in 'new'");
  expect(0, {"status", "p"}, "write `store: new` instead of `migrate`");
  expect(kRefused, {"rollback", "p"}, "start another plan from 'new' to 'old'");
  expect(kRefused, {"start", "p"}, "plan 'p' was finished before");
}

TEST_F(LeasedCli, NothingIsAcquiredBeforeTheStart) {
  const auto refused = finish(with("dlock.yaml", {"hold", "billing/1"}));
  EXPECT_EQ(refused.status.shell_status(), kConfig);
  EXPECT_NE(refused.err.find("the store 'new' has no gate of plan 'p'"), std::string::npos)
      << refused.err;
  for (const std::string verb : {"status", "advance", "rollback", "finish"}) {
    expect(kRefused, {verb, "p"}, "plan 'p' was not started; run `dlock migrate start p`");
  }
  start();
  EXPECT_EQ(try_once("dlock.yaml", "billing/1"), 0);
}

TEST_F(LeasedCli, AHoldLastsThroughAllTurnsInTheStoresOfTheGate) {
  start("2s");
  Holder held(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(held.store(), "old");
  const auto expect_in = [&](bool in_old, bool in_new) {
    EXPECT_TRUE(eventually(patience(), [&] { return is_in("old") == in_old; })) << gate();
    EXPECT_TRUE(eventually(patience(), [&] { return is_in("new") == in_new; })) << gate();
    EXPECT_EQ(try_once("dlock.yaml", "billing/1"), kNotObtained) << gate();
  };
  expect_in(true, false);
  expect(kWaits, {"advance", "p"});
  expect_in(true, true);
  advance_to_target();
  expect_in(false, true);
  expect(kWaits, {"rollback", "p", "--wait", "0"});
  EXPECT_EQ(gate(), "T_THEN_S");
  expect_in(true, true);
  expect(0, {"rollback", "p"}, "locks are acquired in 'old'");
  expect_in(true, false);
  advance_to_target();
  expect(0, {"finish", "p"});
  expect_in(false, true);
  held.let_go();
  EXPECT_FALSE(is_in("new"));
}

TEST_F(LeasedCli, AHoldInBothStoresKeepsOutProgramsThatKnowTheSourceAlone) {
  start();
  expect(kWaits, {"advance", "p"});
  Holder both(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(both.store(), "old");
  EXPECT_EQ(try_once("old.yaml", "billing/1"), kNotObtained);
  both.let_go();
  EXPECT_EQ(try_once("old.yaml", "billing/1"), 0);
}

TEST_F(LeasedCli, ATurnIsImmediateUnlessOneOfTwoStoresIsLeft) {
  start("10m");
  const Words no_wait = {"--wait", "0"};
  const auto expect_at_once = [&](int status, Words arguments, const std::string& state) {
    arguments.insert(arguments.end(), no_wait.begin(), no_wait.end());
    expect(status, arguments);
    EXPECT_EQ(gate(), state);
  };
  expect_at_once(kWaits, {"advance", "p"}, "S_THEN_T");
  expect_at_once(0, {"rollback", "p"}, "S_ALONE");
  expect_at_once(kWaits, {"advance", "p", "--legacy-gone"}, "S_THEN_T");
  expect(kWaits, {"advance", "p", "--legacy-gone", "--wait", "1m"}, "set --wait above 6");
}

TEST_F(LeasedCli, ARollbackIsTakenBackByAnAdvance) {
  start();
  advance_to_target();
  expect(kWaits, {"rollback", "p", "--wait", "0"}, "waits until every program has read the gate");
  expect(0, {"status", "p"}, "Forward: `dlock migrate advance p`");
  expect(0, {"advance", "p", "--wait", "0"}, "locks are acquired in 'new'");
  EXPECT_EQ(gate(), "T_ALONE");
}

TEST_F(LeasedCli, AHolderWithoutTheRouteKeepsTheSourceInUse) {
  start();
  Holder legacy(hold("old.yaml", "billing/1"));
  const auto named = legacy.name();
  const std::string sentence = "holds 'billing/1' in 'old' and does not take part";
  const auto status = migrate_json({"status", "p"});
  const auto& strangers = status.at("strangers").as_array();
  ASSERT_EQ(strangers.size(), 1U);
  EXPECT_EQ(strangers[0].at("pid"), boost::json::value(legacy.pid()));
  expect(kRefused, {"advance", "p", "--legacy-gone"}, sentence);
  expect(kRefused, {"advance", "p", "--legacy-gone"}, named);
  EXPECT_EQ(gate(), "S_THEN_T");
  legacy.let_go();
  advance_to_target();
  Holder late(hold("old.yaml", "billing/1"));
  const auto alarms = migrate_json({"status", "p"}).at("alarms").as_array();
  ASSERT_EQ(alarms.size(), 1U);
  EXPECT_NE(std::string(alarms[0].as_string()).find(sentence), std::string::npos);
}

TEST_F(LeasedCli, AProgramThatKnowsTheTargetAloneIsRefusedUntilTheEnd) {
  EXPECT_EQ(try_once("new.yaml", "billing/1"), 0);
  start();
  EXPECT_EQ(try_once("new.yaml", "billing/1"), kConfig);
  advance_to_target();
  EXPECT_EQ(try_once("new.yaml", "billing/1"), kConfig);
  expect(0, {"finish", "p"});
  EXPECT_EQ(try_once("new.yaml", "billing/1"), 0);
}

TEST_F(LeasedCli, AWithdrawnPlanIsOverAndMayStartAgain) {
  start();
  advance_to_target();
  const auto before = token("dlock.yaml", "billing/1");
  expect(kUsage, {"rollback", "p", "--withdraw"}, "add --all");
  expect(0, {"rollback", "p", "--all", "--withdraw"}, "plan p is withdrawn");
  expect(kRefused, {"status", "p"}, "was not started");
  EXPECT_EQ(try_once("new.yaml", "billing/1"), 0);
  const auto after = token("dlock.yaml", "billing/1");
  EXPECT_GT(after, before);
  start();
  EXPECT_EQ(try_once("dlock.yaml", "billing/1"), 0);
}

TEST_F(LeasedCli, ALostGateIsRestoredInTheStoreThatTheOperatorNames) {
  start();
  advance_to_target();
  const auto before = token("dlock.yaml", "billing/1");
  lose_gate();
  EXPECT_EQ(try_once("dlock.yaml", "billing/1"), kConfig);
  expect(0, {"status", "p"}, "ALARM: the store 'new' has lost the gate");
  for (const std::string verb : {"advance", "rollback", "finish"}) {
    expect(kRefused, {verb, "p"}, "the gate is lost; run `dlock migrate start p`");
  }
  expect(kRefused, {"start", "p"}, "run `dlock migrate start p --at S`");
  expect(kWaits, {"start", "p", "--at", "T", "--wait", "0"}, "set --wait above");
  EXPECT_EQ(gate(), "(none)");
  expect(0, {"start", "p", "--at", "T"}, "locks are acquired in 'new'");
  EXPECT_EQ(gate(), "T_ALONE");
  EXPECT_GT(token("dlock.yaml", "billing/1"), before);
  expect(kRefused, {"start", "p", "--at", "S"}, "--at: the gate of plan 'p' is there");
  lose_gate();
  expect(0, {"start", "p", "--at", "S"}, "locks are acquired in 'old'");
  EXPECT_EQ(gate(), "S_ALONE");
}

TEST_F(LeasedCli, TheGateMayBeInAThirdStore) {
  write("dlock.yaml", leased_route("p", "old", "new", "third"));
  start();
  EXPECT_TRUE(has_note("third", leased_key("p")));
  EXPECT_FALSE(has_note("new", leased_key("p")));
  advance_to_target();
  EXPECT_EQ(try_once("dlock.yaml", "billing/1"), 0);
  write("elsewhere.yaml", leased_route("p"));
  EXPECT_EQ(try_once("elsewhere.yaml", "billing/1"), kConfig);
  expect(0, {"finish", "p"}, "plan p is finished");
}

TEST_F(LeasedCli, ARefusedStartLeavesNothing) {
  start();
  write("q.yaml", leased_route("q", "third", "new"));
  for (const std::string verb : {"plan", "start"}) {
    expect_with("q.yaml", kRefused, {verb, "q"}, "belongs to the unfinished plan 'p'");
  }
  EXPECT_EQ(try_once("q.yaml", "billing/1"), kConfig);
  EXPECT_FALSE(has_note("new", leased_key("q")));
  EXPECT_FALSE(has_note("new", "plan/q"));
  EXPECT_FALSE(has_note("third", "plan/q"));
}

TEST_F(LeasedCli, LocksLeaveAStoreAgainOnlyWhenAPlanHasBroughtThemBack) {
  run_plan("dlock.yaml", "p");
  write("again.yaml", leased_route("again"));
  write("moves.yaml", route_of("moves"));
  for (const std::string plan : {"again", "moves"}) {
    for (const std::string verb : {"plan", "start"}) {
      expect_with(plan + ".yaml", kRefused, {verb, plan}, "plan 'p' has taken 'billing/");
    }
  }
  write("back.yaml", leased_route("back", "new", "old", "old"));
  run_plan("back.yaml", "back");
  expect_with("again.yaml", 0, {"start", "again"});
}

TEST_F(LeasedCli, APlanIsOperatedByTheKindOfRouteThatStartedIt) {
  write("without.yaml", route_of("p"));
  start();
  for (const Words& words : {Words{"start", "p"}, Words{"status", "p"},
                             Words{"advance", "p", "--all"}, Words{"finish", "p", "--all"}}) {
    expect_with("without.yaml", kRefused, words, "was started with `gate: new`");
  }
  EXPECT_EQ(gate(), "S_ALONE");
  expect(0, {"rollback", "p", "--all", "--withdraw"});
  expect_with("without.yaml", 0, {"start", "p"}, "started");
  expect(kRefused, {"status", "p"}, "was started without `gate`");
  expect(kRefused, {"start", "p"}, "was started without `gate`");
}

TEST_F(LeasedCli, ASourceThatForgetsNeedsAGateInAStoreThatDoesNot) {
  const auto built_in = OpenOptions::built_in().backends;
  if (std::none_of(built_in.begin(), built_in.end(),
                   [](const auto* backend) { return backend->name == "memcached"; })) {
    GTEST_SKIP() << "this build has no Memcached";
  }
  testkit::MemcachedServer cache;
  cache.start();
  const auto write_cache = [&](const std::string& file, const std::string& more) {
    std::ofstream(path(file)) << "stores: { cache: \"" << cache.url() << "\", new: \"" << url("new")
                              << "\" }\nlocks:\n  - { match: \"billing/**\", migrate: { " << more
                              << " } }\n";
  };
  write_cache("without.yaml", "from: cache, to: new, plan: p");
  for (const std::string verb : {"plan", "start"}) {
    expect_with("without.yaml", kRefused, {verb, "p"},
                "write `- { match: \"billing/**\", migrate: { from: cache, to: new, plan: p, gate: "
                "new } }`");
  }
  write_cache("in_cache.yaml", "from: new, to: cache, plan: p, gate: cache");
  expect_with("in_cache.yaml", kRefused, {"plan", "p"}, "the store 'cache' may lose the gate");
  write_cache("dlock.yaml", "from: cache, to: new, plan: p, gate: new");
  expect(0, {"plan", "p"}, "note: 'cache' cannot list its locks");
  start();
  Holder in_cache(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(in_cache.store(), "cache");
  in_cache.let_go();
  advance_to_target();
  Holder in_target(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(in_target.store(), "new");
  EXPECT_GT(in_target.token(), in_cache.token());
  in_target.let_go();
}

TEST_F(LeasedCli, CtrlCEndsAWaitAndTheGateStays) {
  start("10m");
  Process advance(
      with("dlock.yaml", {"migrate", "advance", "p", "--legacy-gone", "--wait", "forever"}));
  ASSERT_TRUE(
      advance.stderr_shows("waits until every program has read the gate: 630.0 s more", patience()))
      << advance.collected_stderr();
  advance.signal(SIGINT);
  EXPECT_EQ(ended(advance), 128 + SIGINT);
  EXPECT_NE(advance.collected_stderr().find("run it again"), std::string::npos);
  EXPECT_EQ(gate(), "S_THEN_T");
}

TEST_F(LeasedCli, AMisuseIsRefusedWithItsRemedy) {
  const Words too_short = {"start", "p", "--gate-lease", "499ms"};
  const Words too_long = {"plan", "p", "--gate-lease", "600001ms"};
  expect(kUsage, too_short, "write 500ms to 10m");
  expect(kUsage, too_long, "write 500ms to 10m");
  expect(0, {"plan", "p", "--gate-lease", "10m"}, "for 10m at most");
  expect(kUsage, {"start", "p", "--at", "1"}, "write S or T");
  expect(kUsage, {"plan", "p", "billing/1"}, "one word too many");
  expect(kUsage, {"status", "p", "--legacy-gone"});
  expect(kConfig, {"plan", "other"}, "no entry of `locks:` has the plan 'other'");
  start();
  expect(kUsage, {"advance", "p", "--name", "billing/1"}, "a step is of the whole plan");
  expect(kUsage, {"rollback", "p", "--target-gone"}, "for a plan without a gate");
  write("without.yaml", route_of("p"));
  for (const Words& words :
       {Words{"advance", "p", "--all", "--legacy-gone"}, Words{"start", "p", "--at", "S"},
        Words{"plan", "p", "--gate-lease", "1s"}}) {
    expect_with("without.yaml", kUsage, words, "write `gate: STORE` beside `plan: p`");
  }
}

TEST_F(LeasedCli, ARouteThatCannotBeUsedIsRefused) {
  const auto expect_refused = [&](const std::string& more, const std::string& why) {
    write("dlock.yaml",
          "{ match: \"billing/**\", migrate: { from: old, to: new, plan: p, " + more + " } }");
    expect(kConfig, {"plan", "p"}, why);
    EXPECT_EQ(try_once("dlock.yaml", "billing/1"), kConfig) << more;
  };
  const std::string unknown = ": unknown key of migrate; known: from, to, plan, gate, poll";
  expect_refused("mode: dual", "mode" + unknown);
  expect_refused("phase: 1", "phase" + unknown);
  expect_refused("window: new", "window" + unknown);
  expect_refused("gate: old", "gate: 'old' is the source; write `gate: new`");
  expect_refused("gate: new, poll: 1s", "`poll` has no effect with `gate`; leave it out");
}

TEST_F(LeasedCli, JsonIsAContract) {
  const std::string about = "plan from to gate_store gate_lease_ms max_lease_ms ";
  const auto plan = migrate_json({"plan", "p", "--gate-lease", "1s"});
  EXPECT_EQ(keys(plan), about + "patterns objections remarks");
  EXPECT_EQ(text(plan, "gate_store"), "new");
  EXPECT_EQ(plan.at("gate_lease_ms"), 1'000);
  const auto step_keys = about + "outcome changed text gate strangers finished withdrawn";
  const auto started = migrate_json({"start", "p", "--gate-lease", "500ms"});
  EXPECT_EQ(keys(started), step_keys);
  EXPECT_EQ(text(started, "outcome"), "done");
  const auto waits = migrate_json({"advance", "p"});
  EXPECT_EQ(text(waits, "outcome"), "waiting");
  EXPECT_EQ(waits.at("changed"), true);
  Holder legacy(hold("old.yaml", "billing/1"));
  const auto status = migrate_json({"status", "p"});
  EXPECT_EQ(keys(status), about + "gate next alarms remarks strangers patterns");
  const auto& gate = status.at("gate").as_object();
  EXPECT_EQ(keys(gate), "state ver floor ceiling since_ms");
  EXPECT_EQ(text(gate, "state"), "S_THEN_T");
  EXPECT_EQ(gate.at("ver"), 2);
  const auto& stranger = status.at("strangers").as_array().at(0).as_object();
  EXPECT_EQ(keys(stranger), "store name holds host pid app id");
  EXPECT_EQ(text(migrate_json({"advance", "p", "--legacy-gone"}), "outcome"), "refused");
}

}  // namespace
}  // namespace dlock::cli_test
