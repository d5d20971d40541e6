// SPDX-License-Identifier: Apache-2.0
//
// `dlock migrate`, over two local stores: every verb, every exit status, forward, back and for
// good under real processes.
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "migration/plan.hpp"
#include "tests/cli/migrate_stores.hpp"
#include "tests/support/direct_client.hpp"
#include "tests/support/manual.hpp"

namespace dlock::cli_test {
namespace {

namespace json = boost::json;
using testkit::Process;

const std::string kManual = std::string(DLOCK_DOCS) + "/migration.md";

TEST_F(CliMigrate, FromPlanToFinish) {
  expect(0, {"plan", "p"}, "plan p: all locks of 'billing/**' from 'old' to 'new'");
  expect(kRefused, {"status", "p"}, "was not started");
  expect(kRefused, {"advance", "p", "--all"}, "was not started");
  start();
  start();  // again
  expect(0, {"status", "p"}, "locks of 'billing/**' that are made later: in 'old'");
  Holder two(hold("dlock.yaml", "billing/2"));
  expect(0, {"advance", "p", "--name", "billing/1"}, "billing/1: moved to 'new'");
  EXPECT_EQ(state_of("billing/1"), "MOVED");
  EXPECT_EQ(state_of("billing/2"), "OPEN");
  // One that is still in use in 'old' is waited for, not passed over.
  expect(kWaits, {"finish", "p", "--all", "--wait", "0"}, two.name());
  EXPECT_EQ(gate(), "TURNED");
  two.let_go();
  const std::string later = "locks of 'billing/**' that are made later: in 'new'";
  expect(0, {"advance", "p", "--all"}, later);
  expect(0, {"advance", "p", "--all"}, later);  // again
  Holder one(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(one.store(), "new");
  one.let_go();
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
  expect(0, {"finish", "p", "--all"}, "plan p is finished");  // again
  expect(0, {"status", "p"}, "nothing: it is finished");
  EXPECT_EQ(gate(), "FINAL");
  EXPECT_EQ(state_of("billing/1"), "MOVED");  // it needs no record of the finish of its own
  expect(kRefused, {"rollback", "p", "--all"}, "a plan of its own");
  expect(kRefused, {"rollback", "p", "--name", "billing/1"}, "a plan of its own");
  expect(kRefused, {"start", "p"}, "finished before");
}

TEST_F(CliMigrate, AFullPipeDoesNotDelayASignal) {
  const FullPipe full;
  auto options = dlock({"--config", path("dlock.yaml"), "migrate", "plan", "p"});
  options.log_file = full.path();
  Process plan(options);
  EXPECT_FALSE(plan.wait(within(500ms)));
  plan.signal(SIGTERM);
  const auto ended = plan.wait(within(5s));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 128 + SIGTERM);
}

TEST_F(CliMigrate, APlanTakesNoNames) {
  for (const std::string verb : {"plan", "start"}) {
    expect(kUsage, {verb, "p", "billing/1"}, "governs every lock that its route matches");
    expect(kUsage, {verb, "p", "billing/*"}, "leave the names out");
  }
  expect(kRefused, {"status", "p"}, "was not started");
  start();
  expect(kUsage, {"start", "p", "billing/1"}, "leave the names out");
}

TEST_F(CliMigrate, WaitsForANamedHolderAndGoesOnWhenItHasLeft) {
  start();
  Holder held(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(held.store(), "old");
  Holder other(hold("dlock.yaml", "billing/2"));
  expect(kWaits, {"advance", "p", "--name", "billing/1", "--wait", "200ms"}, held.name());
  expect(kWaits, {"advance", "p", "--all", "--wait", "0"}, held.name());
  EXPECT_EQ(Holder(hold("dlock.yaml", "billing/3")).store(), "new");  // did not wait for it
  const auto lock = lock_of("billing/1");
  ASSERT_TRUE(lock.at("holder").is_object());
  EXPECT_EQ(lock.at("holder").as_object().at("pid"), json::value(held.pid()));
  Process advance(with("dlock.yaml", {"migrate", "advance", "p", "--all", "--wait", "forever"}));
  for (const std::string name : {"billing/1", "billing/2"}) {
    EXPECT_TRUE(testkit::eventually(patience(), [&] { return waiting(url("old"), name) == 1; }));
  }
  other.let_go();
  EXPECT_TRUE(testkit::eventually(patience(), [&] { return state_of("billing/2") == "MOVED"; }));
  EXPECT_EQ(state_of("billing/1"), "OPEN");  // the other did not wait for it
  held.let_go();
  EXPECT_EQ(ended(advance), 0);
  Holder again(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(again.store(), "new");
  EXPECT_GT(again.token(), held.token());
}

TEST_F(CliMigrate, RollbackBlocksTheNameUntilItsHolderLeavesAndMayBeTakenBack) {
  start();
  expect(0, {"advance", "p", "--name", "billing/1"});
  Holder held(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(held.store(), "new");
  expect(kWaits, {"rollback", "p", "--name", "billing/1", "--wait", "100ms"}, "in the store 'new'");
  auto lock = lock_of("billing/1");
  EXPECT_EQ(text(lock, "state"), "CLOSING");
  EXPECT_TRUE(lock.at("since_ms").is_int64());
  expect(0, {"status", "p"}, "on its way back to 'old' for");
  expect(kUsage, {"finish", "p", "--name", "billing/1"}, "--name");
  expect(0, {"advance", "p", "--name", "billing/1"});  // taken back; the holder goes on
  EXPECT_EQ(state_of("billing/1"), "MOVED");
  Process back(with("dlock.yaml", {"migrate", "rollback", "p", "--all", "--wait", "forever"}));
  EXPECT_TRUE(testkit::eventually(patience(), [&] { return state_of("billing/1") == "CLOSING"; }));
  held.let_go();
  EXPECT_EQ(ended(back), 0);
  Holder again(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(again.store(), "old");
  EXPECT_EQ(state_of("billing/1"), "OPEN");
  EXPECT_GT(again.token(), held.token());
}

// A plan that were final with a lock on its way back would close that lock for ever.
TEST_F(CliMigrate, FinishTakesBackARollbackThatIsUnderWay) {
  start();
  expect(0, {"advance", "p", "--name", "billing/1"});
  Holder held(hold("dlock.yaml", "billing/1"));
  expect(kWaits, {"rollback", "p", "--all", "--wait", "0"}, "in the store 'new'");
  EXPECT_EQ(state_of("billing/1"), "CLOSING");
  expect(0, {"finish", "p", "--all"}, "plan p is finished");  // whoever is in 'new' goes on
  EXPECT_EQ(state_of("billing/1"), "MOVED");
  held.let_go();
  EXPECT_GT(token("new.yaml", "billing/1"), held.token());
}

TEST_F(CliMigrate, ARollbackOfOneLockIsRefusedWhileAllGoToTheTarget) {
  start();
  expect(0, {"advance", "p", "--all"});
  expect(0, {"advance", "p", "--name", "billing/1"}, "moved");
  expect(kRefused, {"rollback", "p", "--name", "billing/1"}, "rollback p --all");
  EXPECT_EQ(state_of("billing/1"), "MOVED");
  expect(0, {"rollback", "p", "--all"}, "billing/1: in 'old'");
  expect(0, {"advance", "p", "--name", "billing/1"}, "made later: in 'old'");
  expect(0, {"rollback", "p", "--name", "billing/1"}, "billing/1: in 'old'");
}

TEST_F(CliMigrate, ThoseWhoDoNotTakePartAreToldWhatToWrite) {
  start();
  const auto early = finish(with("new.yaml", {"hold", "billing/1", "--wait", "0"}));
  EXPECT_EQ(early.status.shell_status(), kConfig) << early.err;
  EXPECT_NE(early.err.find("migrate: { from: old, to: new, plan: p }"), std::string::npos)
      << early.err;
  expect(0, {"advance", "p", "--name", "billing/1"});
  expect(0, {"advance", "p", "--all"});
  const auto late = finish(with("old.yaml", {"hold", "billing/1", "--wait", "0"}));
  EXPECT_EQ(late.status.shell_status(), kConfig) << late.err;
  EXPECT_NE(late.err.find("plan 'p' moves it from the store 'old' to 'new'"), std::string::npos)
      << late.err;
  expect(0, {"finish", "p", "--all"});
  EXPECT_EQ(Holder(hold("new.yaml", "billing/1")).store(), "new");
}

TEST_F(CliMigrate, CtrlCEndsAWaitAndLeavesNothing) {
  start();
  Holder held(hold("dlock.yaml", "billing/1"));
  const auto waiting = [&] {
    const auto status = finish(with("old.yaml", {"status", "billing/1", "--json"}));
    return status.out.find("\"waiting\":[{") != std::string::npos;
  };
  const auto interrupt = [&](std::vector<std::string> which) {
    which.insert(which.begin(), {"migrate", "advance", "p", "--wait", "forever"});
    Process advance(with("dlock.yaml", which));
    EXPECT_TRUE(testkit::eventually(patience(), waiting));
    advance.signal(SIGINT);
    EXPECT_EQ(ended(advance), 128 + SIGINT);
    EXPECT_NE(advance.collected_stderr().find("run it again to go on"), std::string::npos);
    EXPECT_FALSE(waiting());
    EXPECT_EQ(state_of("billing/1"), "OPEN");
  };
  interrupt({"--name", "billing/1"});
  EXPECT_EQ(gate(), "OPEN");
  interrupt({"--all"});
  EXPECT_EQ(gate(), "TURNED");  // what was done is done
  held.let_go();
  expect(0, {"advance", "p", "--all"}, "made later: in 'new'");
}

TEST_F(CliMigrate, PatternsAreLookedUpInTheSource) {
  Holder one(hold("dlock.yaml", "billing/a"));
  Holder two(hold("dlock.yaml", "billing/b/c"));
  Holder elsewhere(hold("old.yaml", "other/a"));
  const auto plan = migrate_json({"plan", "p"});
  EXPECT_EQ(keys(plan),
            "plan from to patterns max_lease_ms target_forgets names strangers objections started");
  EXPECT_EQ(plan.at("patterns"), json::array{"billing/**"});
  EXPECT_EQ(plan.at("names"), (json::array{"billing/a", "billing/b/c"}));
  start();
  EXPECT_EQ(migrate_json({"status", "p"}).at("locks").as_array().size(), 2U);
  expect(kRefused, {"advance", "p", "--name", "other/a"}, "is not in plan 'p'");
}

TEST_F(CliMigrate, OnePlanPerNameAndAWithdrawnPlanMakesRoom) {
  start();
  write("dlock.yaml", route_of("q"));
  expect(kRefused, {"start", "q"}, "belongs to the unfinished plan 'p'");
  write("dlock.yaml", route_of("q", "billing/1"));  // one that the other governs
  expect(kRefused, {"start", "q"}, "belongs to the unfinished plan 'p'");
  write("dlock.yaml", route_of("p"));
  expect(0, {"rollback", "p", "--all", "--withdraw"}, "withdrawn");
  expect(kRefused, {"status", "p"}, "was not started");
  write("dlock.yaml", route_of("q"));
  expect(0, {"start", "q"}, "started");
}

// Followed to the letter, the refused plan's `advance` moved the lock away from the first one's
// programs.
TEST_F(CliMigrate, ARefusedStartPublishesNothing) {
  start();
  Holder held(hold("dlock.yaml", "billing/1"));
  write("q.yaml", route_of("q", "billing/**", "old", "third"));
  for (const std::string verb : {"plan", "start", "plan", "start"}) {
    expect_with("q.yaml", kRefused, {verb, "q"}, "belongs to the unfinished plan 'p'");
  }
  for (const std::string verb : {"advance", "rollback", "finish"}) {
    expect_with("q.yaml", kRefused, {verb, "q", "--all"}, "was not started");
  }
  expect_with("q.yaml", kRefused, {"status", "q"}, "was not started");
  for (const std::string store : {"old", "third"}) {
    for (const std::string key : {"plan/q", "gate/q"}) {
      EXPECT_FALSE(testkit::DirectClient(url(store)).note(key).found) << store << key;
    }
  }
  EXPECT_EQ(state_of("billing/1"), "OPEN");
}

TEST_F(CliMigrate, APlanOfAnotherVersionIsRefusedAndNothingIsChanged) {
  const std::string text =
      "dlock-plan1\nname=p\nid=0123456789abcdef\nfrom=old\nto=new\nmax_lease_ms=0\n"
      "lossy_target=0\nleased_target=0\nnames=1\nbilling/1";
  for (const std::string store : {"old", "new"}) {
    testkit::DirectClient client(url(store));
    const auto list = store == "old" ? "plans-out" : "plans-in";
    ASSERT_EQ(client.set_note("plan/p", std::nullopt, text).status, RecordStatus::done);
    ASSERT_EQ(client.set_note(list, std::nullopt, "dlock-plans1\np").status, RecordStatus::done);
  }
  const std::string why = "another version of dlock wrote it";
  for (const std::string verb : {"start", "status"}) expect(kRefused, {verb, "p"}, why);
  for (const std::string verb : {"advance", "rollback", "finish"}) {
    expect(kRefused, {verb, "p", "--all"}, why);
  }
  for (const std::string store : {"old", "new"}) {
    EXPECT_EQ(testkit::DirectClient(url(store)).note("plan/p").found, text) << store;
  }
  EXPECT_FALSE(testkit::DirectClient(url("old")).note("gate/p").found);
  const auto alone = finish(with("new.yaml", {"hold", "billing/1", "--wait", "0"}));
  EXPECT_EQ(alone.status.shell_status(), kConfig) << alone.err;
  EXPECT_NE(alone.err.find(why), std::string::npos) << alone.err;
}

TEST_F(CliMigrate, ARouteOfAnExactNameMovesThatLock) {
  write("dlock.yaml", route_of("p", "billing/1"));
  expect(0, {"start", "p"}, "all locks of 'billing/1'");
  expect(kRefused, {"advance", "p", "--name", "billing/2"}, "is not in plan 'p'");
  expect(0, {"advance", "p", "--all"}, "made later: in 'new'");
  EXPECT_EQ(Holder(hold("dlock.yaml", "billing/1")).store(), "new");
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
}

// The notes of a start that died have no effect, and do not prevent another start.
TEST_F(CliMigrate, AStartThatWasBrokenOffIsNotInEffect) {
  start();
  testkit::DirectClient source(url("old"));
  const auto list = source.note("plans-out").found;
  ASSERT_EQ(source.set_note("plans-out", list, std::nullopt).status, RecordStatus::done);
  for (const std::string verb : {"advance", "rollback", "finish"}) {
    expect(kRefused, {verb, "p", "--all"}, "refused or broken off, and nothing of it is in effect");
  }
  expect(kRefused, {"status", "p"}, "dlock migrate start p");
  start();
  expect(0, {"advance", "p", "--all"}, "made later: in 'new'");
}

// A target may forget its notes. The plan is in effect all the same, and there is a way on and
// back.
TEST_F(CliMigrate, ATargetThatHasLostItsNotesIsGivenThemAnew) {
  start();
  expect(0, {"advance", "p", "--name", "billing/1"}, "moved");
  testkit::DirectClient target(url("new"));
  for (const std::string key : {"plans-in", "plan/p"}) {
    const auto note = target.note(key).found;
    ASSERT_TRUE(note) << key;
    ASSERT_EQ(target.set_note(key, note, std::nullopt).status, RecordStatus::done);
  }
  expect(0, {"status", "p"}, "moved to 'new'");
  for (const std::string verb : {"advance", "rollback"}) {
    expect(kRefused, {verb, "p", "--all"}, "has lost its notes");
  }
  EXPECT_EQ(state_of("billing/1"), "MOVED");
  EXPECT_EQ(gate(), "OPEN");
  start();
  const auto list = target.note("plans-in").found;
  ASSERT_EQ(target.set_note("plans-in", list, std::nullopt).status, RecordStatus::done);
  expect(kRefused, {"advance", "p", "--all"}, "are not kept out");
  expect(0, {"rollback", "p", "--all"}, "billing/1: in 'old'");
  start();
  expect(0, {"advance", "p", "--all"}, "made later: in 'new'");
}

TEST_F(CliMigrate, ATargetThatIsTakenIsRefusedBeforeAnythingIsWritten) {
  write("away.yaml", route_of("away", "billing/**", "new", "third"));
  expect_with("away.yaml", 0, {"start", "away"});
  expect_with("away.yaml", 0, {"advance", "away", "--name", "billing/2"});
  expect_with("away.yaml", 0, {"finish", "away", "--all"});
  const std::string why =
      "'billing/2': plan 'away' has it in the store 'new', where it is MOVED and leads to 'third'";
  {
    Holder held(hold("dlock.yaml", "billing/2"));
    Holder other(hold("dlock.yaml", "billing/1"));
    expect(kRefused, {"plan", "p"}, why);
    expect(kRefused, {"start", "p"}, why);
    expect(kRefused, {"status", "p"}, "was not started");
    EXPECT_EQ(migrate_json({"plan", "p"}).at("objections").as_array().size(), 1U);
  }
  // Of an idle lock it is seen when its turn comes, and nothing is written of it.
  expect(0, {"start", "p"}, "started");
  expect(kRefused, {"advance", "p", "--name", "billing/2"}, "plan 'away' has it");
  Holder held(hold("dlock.yaml", "billing/2"));
  EXPECT_EQ(held.store(), "old");
  expect(kRefused, {"advance", "p", "--all"}, "plan 'away' has it");
  EXPECT_EQ(state_of("billing/2"), "OPEN");
}

TEST_F(CliMigrate, AMovedLockWhosePlaceIsStillClosedIsUnderWay) {
  start();
  expect(0, {"advance", "p", "--name", "billing/1"});
  expect(0, {"rollback", "p", "--all"});
  {
    // As if a command had died between the seal in the one store and the opening in the other.
    testkit::DirectClient client(url("new"));
    const auto left = client.record("billing/1").found;
    ASSERT_TRUE(left);
    expect(0, {"advance", "p", "--name", "billing/1", "--name", "billing/2"});
    const auto claim = client.acquire("billing/1");
    ASSERT_EQ(client.seal(claim, *left).status, RecordStatus::done);
  }
  for (const auto* const name : {"billing/1", "billing/2"}) {
    EXPECT_TRUE(lock_of(name).at("alarms").as_array().empty()) << name;
  }
  expect(0, {"finish", "p", "--all"});
  testkit::DirectClient client(url("new"));
  EXPECT_FALSE(client.record("billing/1").found) << "whoever comes there finds it open";
}

TEST_F(CliMigrate, AStatusThatIsAskedForAloneTellsASealedLockFromAFreeOne) {
  start();
  const auto status = [&](const std::string& name) {
    const auto asked = finish(with("old.yaml", {"status", name, "--json"}));
    return json::parse(asked.out).as_object();
  };
  EXPECT_EQ(status("billing/1").at("sealed"), json::value(false));
  expect(0, {"advance", "p", "--name", "billing/1"});
  EXPECT_EQ(status("billing/1").at("sealed"), json::value(true));
  EXPECT_EQ(status("billing/1").at("held"), json::value(false));
  EXPECT_EQ(status("billing/2").at("sealed"), json::value(false));
  const auto people = finish(with("old.yaml", {"status", "billing/1"}));
  EXPECT_EQ(people.out.find("billing/1: sealed"), 0U) << people.out;
  const auto all = finish(with("old.yaml", {"list"}));
  EXPECT_NE(all.out.find("(sealed)"), std::string::npos) << all.out;
}

TEST_F(CliMigrate, WhatIsWrongWithTheCommandIsSaid) {
  expect(kUsage, {"advance", "p"}, "say which locks");
  expect(kUsage, {"advance", "p", "--all", "--name", "billing/1"});
  expect(kUsage, {"rollback", "p", "--name", "billing/1", "--withdraw"}, "add --all");
  expect(kUsage, {"advance"});
  expect(kConfig, {"plan", "other"}, "no entry of `locks:` has the plan 'other'");
  start();
  expect(kRefused, {"advance", "p", "--name", "elsewhere/3"}, "is not in plan 'p'");
  // Nobody can tell when the locks of a store without leases are over.
  expect(0, {"advance", "p", "--name", "billing/1"});
  expect(kRefused, {"rollback", "p", "--all", "--target-gone"}, "have no lease");
}

TEST_F(CliMigrate, TheManualsCommandsDoWhatItSays) {
  const auto configuration = testkit::manual_configurations(kManual, "The recipe");
  ASSERT_EQ(configuration.size(), 2U);
  const auto write_block = [&](const char* file, const std::string& block) {
    std::ofstream(path(file)) << testkit::with_stores(block, url("old"), url("new"));
  };
  write_block("dlock.yaml", configuration[0]);
  write_block("after.yaml", configuration[1]);
  const auto run = [&](const std::vector<std::string>& command) {
    const auto result = finish(with("dlock.yaml", command));
    EXPECT_EQ(result.status.shell_status(), 0) << command[1] << ": " << result.out << result.err;
  };
  const auto there = testkit::manual_commands(kManual, "The recipe");
  ASSERT_EQ(there.size(), 6U);
  Process seven(with("dlock.yaml", {"hold", "billing/7"}));
  read_event(seven);
  run(there[0]);
  run(there[1]);
  seven.close_stdin();
  EXPECT_EQ(ended(seven), 0);
  for (int i = 2; i < 5; ++i) run(there[static_cast<std::size_t>(i)]);
  const auto back = testkit::manual_commands(kManual, "And back");
  ASSERT_EQ(back.size(), 3U);
  run(back[0]);
  run(there[2]);
  run(there[3]);
  EXPECT_EQ(finish(with("dlock.yaml", back[2])).status.shell_status(), kRefused);  // no leases
  run(back[1]);
  run(there[1]);
  run(there[5]);
  Process eight(with("after.yaml", {"hold", "billing/8"}));
  EXPECT_EQ(text(read_event(eight), "store"), "new");
}

TEST_F(CliMigrate, JsonIsAContract) {
  const auto started = migrate_json({"start", "p"});
  EXPECT_EQ(keys(started),
            "plan from to patterns max_lease_ms target_forgets names strangers objections started");
  expect(0, {"advance", "p", "--name", "billing/1"});
  Holder stranger(hold("old.yaml", "billing/2"));
  const auto steps = migrate_json({"advance", "p", "--all", "--wait", "0"});
  EXPECT_EQ(keys(steps),
            "plan from to patterns max_lease_ms finished withdrawn gate strangers locks");
  EXPECT_EQ(steps.at("patterns"), json::array{"billing/**"});
  EXPECT_EQ(keys(steps.at("locks").as_array().at(0).as_object()),
            "name outcome state gen changed holder text");
  EXPECT_EQ(keys(steps.at("strangers").as_array().at(0).as_object()),
            "store host pid pid_namespace app id name holds");
  EXPECT_EQ(keys(steps.at("gate").as_object()), "state version floor");
  const auto status = migrate_json({"status", "p"});
  EXPECT_EQ(keys(status), "plan from to patterns max_lease_ms finished gate next alarms locks");
  EXPECT_EQ(status.at("gate"), steps.at("gate"));
  EXPECT_EQ(keys(status.at("locks").as_array().at(0).as_object()),
            "name state gen since_ms holder laggards alarms");
}

}  // namespace
}  // namespace dlock::cli_test
