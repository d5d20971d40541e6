// SPDX-License-Identifier: Apache-2.0
//
// `dlock migrate`, over two local stores: every verb, every exit status, forward, back and for
// good under real processes.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/exit_codes.hpp"
#include "tests/cli/cli_support.hpp"
#include "tests/support/direct_client.hpp"
#include "tests/support/manual.hpp"

namespace dlock::cli_test {
namespace {

namespace json = boost::json;
using testkit::Process;

const std::string kManual = std::string(DLOCK_DOCS) + "/migration.md";

constexpr int kWaits = 3;
constexpr int kRefused = 4;
constexpr int kUsage = 64;
constexpr int kConfig = 78;

/// Two stores, and the configurations of those who take part and of those who know one alone.
class CliMigrate : public testing::Test {
 protected:
  CliMigrate() {
    write("dlock.yaml", "{ match: \"billing/**\", migrate: { from: old, to: new, plan: p } }");
    write("old.yaml", "{ match: \"**\", store: old }");
    write("new.yaml", "{ match: \"**\", store: new }");
  }

  void write(const std::string& file, const std::string& route) const {
    std::ofstream(path(file)) << "stores:\n  old: \"" << url("old") << "\"\n  new: \"" << url("new")
                              << "\"\n  third: \"" << url("third") << "\"\nlocks:\n  - " << route
                              << "\n";
  }
  std::string url(const std::string& store) const {
    return "file://" + (folder_.path() / store).string();
  }
  std::string path(const std::string& file) const { return (folder_.path() / file).string(); }

  testkit::ProcessOptions with(const std::string& file, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--config", path(file)});
    return dlock(std::move(arguments));
  }
  testkit::Finished migrate(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "migrate");
    return finish(with("dlock.yaml", std::move(arguments)));
  }
  void expect(int status, std::vector<std::string> arguments, const std::string& part = {}) const {
    const auto line = arguments.front();
    const auto result = migrate(std::move(arguments));
    EXPECT_EQ(result.status.shell_status(), status) << line << ": " << result.out << result.err;
    EXPECT_NE((result.out + result.err).find(part), std::string::npos)
        << line << ": " << result.out << result.err;
  }
  json::object migrate_json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const auto result = migrate(std::move(arguments));
    json::error_code error;
    const auto value = json::parse(result.out, error);
    EXPECT_TRUE(!error && value.is_object()) << result.out << result.err;
    return !error && value.is_object() ? value.as_object() : json::object();
  }
  json::object lock_of(const std::string& name) const {
    const auto status = migrate_json({"status", "p"});
    if (!status.contains("locks")) return {};
    for (const auto& lock : status.at("locks").as_array()) {
      if (text(lock.as_object(), "name") == name) return lock.as_object();
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }
  void start() const { expect(0, {"start", "p", "billing/1", "billing/2"}, "started"); }

  testkit::TempDir folder_{"dlock-migrate-test"};
};

int ended(Process& process) {
  const auto status = process.wait(patience());
  return status ? status->shell_status() : -1;
}

std::string keys(const json::object& object) {
  std::string joined;
  for (const auto& pair : object) joined += (joined.empty() ? "" : " ") + std::string(pair.key());
  return joined;
}

TEST_F(CliMigrate, FromPlanToFinish) {
  expect(0, {"plan", "p", "billing/1", "billing/2"}, "plan p: 2 locks from 'old' to 'new'");
  expect(kRefused, {"status", "p"}, "was not started");
  expect(kRefused, {"advance", "p", "--all"}, "was not started");
  start();
  start();  // again
  expect(0, {"start", "p"}, "started");
  EXPECT_EQ(text(lock_of("billing/1"), "state"), "OPEN");
  expect(0, {"advance", "p", "--name", "billing/1"}, "billing/1: moved to 'new'");
  EXPECT_EQ(text(lock_of("billing/1"), "state"), "MOVED");
  EXPECT_EQ(text(lock_of("billing/2"), "state"), "OPEN");
  expect(kRefused, {"finish", "p", "--all"}, "still in 'old'");
  expect(0, {"advance", "p", "--all"});
  expect(0, {"advance", "p", "--all"});  // again
  Process hold(with("dlock.yaml", {"hold", "billing/1"}));
  EXPECT_EQ(text(read_event(hold), "store"), "new");
  hold.close_stdin();
  EXPECT_EQ(ended(hold), 0);
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
  expect(0, {"finish", "p", "--all"});  // again
  EXPECT_EQ(text(lock_of("billing/2"), "state"), "FINAL");
  expect(kRefused, {"rollback", "p", "--all"}, "a plan of its own");
  expect(kRefused, {"start", "p", "billing/1", "billing/2"}, "finished before");
}

TEST_F(CliMigrate, WaitsForANamedHolderAndGoesOnWhenItHasLeft) {
  start();
  Process hold(with("dlock.yaml", {"hold", "billing/1"}));
  const auto held = read_event(hold);
  EXPECT_EQ(text(held, "store"), "old");
  const auto who = "dlock (pid " + std::to_string(hold.pid()) + " on ";
  expect(kWaits, {"advance", "p", "--name", "billing/1", "--wait", "200ms"}, who);
  expect(kWaits, {"advance", "p", "--all", "--wait", "0"}, who);
  EXPECT_EQ(text(lock_of("billing/2"), "state"), "MOVED");  // the other did not wait for it
  const auto lock = lock_of("billing/1");
  ASSERT_TRUE(lock.at("holder").is_object());
  EXPECT_EQ(lock.at("holder").as_object().at("pid"), json::value(hold.pid()));
  Process advance(with("dlock.yaml", {"migrate", "advance", "p", "--all", "--wait", "forever"}));
  hold.close_stdin();
  EXPECT_EQ(ended(advance), 0);
  Process again(with("dlock.yaml", {"hold", "billing/1"}));
  const auto moved = read_event(again);
  EXPECT_EQ(text(moved, "store"), "new");
  EXPECT_GT(moved.at("token").to_number<std::int64_t>(),
            held.at("token").to_number<std::int64_t>());
}

TEST_F(CliMigrate, RollbackBlocksTheNameUntilItsHolderLeavesAndMayBeTakenBack) {
  start();
  expect(0, {"advance", "p", "--all"});
  Process hold(with("dlock.yaml", {"hold", "billing/1"}));
  const auto held = read_event(hold);
  EXPECT_EQ(text(held, "store"), "new");
  expect(kWaits, {"rollback", "p", "--name", "billing/1", "--wait", "100ms"}, "in the store 'new'");
  auto lock = lock_of("billing/1");
  EXPECT_EQ(text(lock, "state"), "CLOSING");
  EXPECT_TRUE(lock.at("since_ms").is_int64());
  expect(kRefused, {"finish", "p", "--name", "billing/1"}, "a rollback is under way");
  expect(0, {"advance", "p", "--name", "billing/1"});  // taken back; the holder goes on
  EXPECT_EQ(text(lock_of("billing/1"), "state"), "MOVED");
  Process back(with("dlock.yaml", {"migrate", "rollback", "p", "--all", "--wait", "forever"}));
  testkit::eventually(patience(), [&] { return text(lock_of("billing/1"), "state") == "CLOSING"; });
  hold.close_stdin();
  EXPECT_EQ(ended(back), 0);
  EXPECT_EQ(text(lock_of("billing/1"), "state"), "OPEN");
  Process again(with("dlock.yaml", {"hold", "billing/1"}));
  const auto returned = read_event(again);
  EXPECT_EQ(text(returned, "store"), "old");
  EXPECT_GT(returned.at("token").to_number<std::int64_t>(),
            held.at("token").to_number<std::int64_t>());
}

TEST_F(CliMigrate, ThoseWhoDoNotTakePartAreToldWhatToWrite) {
  start();
  const auto early = finish(with("new.yaml", {"hold", "billing/1", "--wait", "0"}));
  EXPECT_EQ(early.status.shell_status(), kConfig) << early.err;
  EXPECT_NE(early.err.find("migrate: { from: old, to: new, plan: p }"), std::string::npos)
      << early.err;
  expect(0, {"advance", "p", "--all"});
  const auto late = finish(with("old.yaml", {"hold", "billing/1", "--wait", "0"}));
  EXPECT_EQ(late.status.shell_status(), kConfig) << late.err;
  EXPECT_NE(late.err.find("plan 'p' moves it from the store 'old' to 'new'"), std::string::npos)
      << late.err;
  expect(0, {"finish", "p", "--all"});
  Process home(with("new.yaml", {"hold", "billing/1"}));
  EXPECT_EQ(text(read_event(home), "event"), "held");
}

TEST_F(CliMigrate, CtrlCEndsAWaitAndLeavesNothing) {
  start();
  Process hold(with("dlock.yaml", {"hold", "billing/1"}));
  read_event(hold);
  Process advance(
      with("dlock.yaml", {"migrate", "advance", "p", "--name", "billing/1", "--wait", "forever"}));
  const auto waiting = [&] {
    const auto status = finish(with("old.yaml", {"status", "billing/1", "--json"}));
    return status.out.find("\"waiting\":[{") != std::string::npos;
  };
  testkit::eventually(patience(), waiting);
  advance.signal(SIGINT);
  EXPECT_EQ(ended(advance), 128 + SIGINT);
  EXPECT_FALSE(waiting());
  EXPECT_EQ(text(lock_of("billing/1"), "state"), "OPEN");
}

TEST_F(CliMigrate, PatternsAreLookedUpInTheSource) {
  Process one(with("dlock.yaml", {"hold", "billing/a"}));
  Process two(with("dlock.yaml", {"hold", "billing/b/c"}));
  read_event(one);
  read_event(two);
  const auto plan = migrate_json({"plan", "p"});
  EXPECT_EQ(keys(plan), "plan from to max_lease_ms target_forgets names objections started");
  EXPECT_EQ(plan.at("names"), (json::array{"billing/a", "billing/b/c"}));
  EXPECT_EQ(migrate_json({"plan", "p", "billing/*"}).at("names"), json::array{"billing/a"});
  expect(kRefused, {"plan", "p", "billing/none*"}, "no lock to move");
  expect(kRefused, {"plan", "p", "elsewhere/1"}, "is not routed by plan 'p'");
}

TEST_F(CliMigrate, OnePlanPerNameAndAWithdrawnPlanMakesRoom) {
  start();
  write("dlock.yaml", "{ match: \"billing/**\", migrate: { from: old, to: new, plan: q } }");
  expect(kRefused, {"start", "q", "billing/1"}, "belongs to the unfinished plan 'p'");
  write("dlock.yaml", "{ match: \"billing/**\", migrate: { from: old, to: new, plan: p } }");
  expect(0, {"rollback", "p", "--all", "--withdraw"}, "withdrawn");
  expect(kRefused, {"status", "p"}, "was not started");
  write("dlock.yaml", "{ match: \"billing/**\", migrate: { from: old, to: new, plan: q } }");
  expect(0, {"start", "q", "billing/1"}, "started");
}

// Followed to the letter, the refused plan's `advance` moved the lock away from the first one's
// programs.
TEST_F(CliMigrate, ARefusedStartPublishesNothing) {
  start();
  write("q.yaml", "{ match: \"billing/**\", migrate: { from: old, to: third, plan: q } }");
  const auto as_q = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "migrate");
    return finish(with("q.yaml", std::move(arguments)));
  };
  for (const std::string verb : {"plan", "start", "plan", "start"}) {
    const auto refused = as_q({verb, "q", "billing/1"});
    EXPECT_EQ(refused.status.shell_status(), kRefused) << verb;
    EXPECT_NE((refused.out + refused.err).find("belongs to the unfinished plan 'p'"),
              std::string::npos)
        << verb << ": " << refused.out << refused.err;
  }
  for (const std::string verb : {"advance", "rollback", "finish"}) {
    const auto refused = as_q({verb, "q", "--all"});
    EXPECT_EQ(refused.status.shell_status(), kRefused) << verb;
    EXPECT_NE(refused.err.find("was not started"), std::string::npos) << verb << refused.err;
  }
  EXPECT_EQ(as_q({"status", "q"}).status.shell_status(), kRefused);
  for (const std::string store : {"old", "third"}) {
    EXPECT_FALSE(testkit::DirectClient(url(store)).note("plan/q").found) << store;
  }
  EXPECT_EQ(text(lock_of("billing/1"), "state"), "OPEN");
}

// Names that nobody listed stay where each program's own route leads: that is said, not hidden.
TEST_F(CliMigrate, NamesThatThePlanDoesNotListAreWarnedOf) {
  const std::string unlisted = "names of 'billing/**' that plan 'p' does not list";
  expect(0, {"plan", "p", "billing/1", "billing/2"}, unlisted);
  expect(0, {"start", "p", "billing/1", "billing/2"}, "idle ones too");
  expect(0, {"advance", "p", "--all"}, "moved");
  expect(0, {"finish", "p", "--all"}, "stop all of the former before the first of the latter");
  expect(0, {"finish", "p", "--all"}, unlisted);  // again
  expect(0, {"status", "p"}, unlisted);
}

// What it had written before it died is in effect for nobody, and in nobody's way.
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
  expect(0, {"advance", "p", "--all"}, "moved");
}

// A target may forget its notes. The plan is in effect all the same, and there is a way on and
// back.
TEST_F(CliMigrate, ATargetThatHasLostItsNotesIsGivenThemAnew) {
  start();
  expect(0, {"advance", "p", "--name", "billing/1"}, "moved");
  testkit::DirectClient target(url("new"));
  for (const std::string key : {"plans-in", "plan/p", "moved/p"}) {
    const auto note = target.note(key).found;
    ASSERT_TRUE(note) << key;
    ASSERT_EQ(target.set_note(key, note, std::nullopt).status, RecordStatus::done);
  }
  expect(0, {"status", "p"}, "moved to 'new'");
  for (const std::string verb : {"advance", "rollback"}) {
    expect(kRefused, {verb, "p", "--all"}, "has lost its notes");
  }
  EXPECT_EQ(text(lock_of("billing/1"), "state"), "MOVED");
  start();
  const auto list = target.note("plans-in").found;
  ASSERT_EQ(target.set_note("plans-in", list, std::nullopt).status, RecordStatus::done);
  expect(kRefused, {"advance", "p", "--all"}, "are not kept out");
  expect(0, {"rollback", "p", "--all"}, "billing/1: in 'old'");
  start();
  expect(0, {"advance", "p", "--all"}, "moved");
}

// Each second round left an ALARM that was false: the advance noted what it had moved when the
// rollback had taken it back. Every third round one of the two is killed. DLOCK_ROUNDS: how many.
TEST_F(CliMigrate, AdvanceAndRollbackAtOnceLeaveNoFalseAlarmAndNothingClosed) {
  const char* const rounds = std::getenv("DLOCK_ROUNDS");
  const int most = rounds != nullptr ? std::atoi(rounds) : 9;
  expect(0, {"start", "p", "billing/1", "billing/2", "billing/3"}, "started");
  for (int round = 0; round < most; ++round) {
    const auto command = [&](const std::string& verb) {
      return with("dlock.yaml", {"migrate", verb, "p", "--all"});
    };
    Process advance(command("advance"));
    Process rollback(command("rollback"));
    if (round % 3 == 2) {
      auto& victim = round % 2 == 0 ? advance : rollback;
      if (!victim.wait(testkit::within(std::chrono::milliseconds(5 + 7 * (round % 11))))) {
        victim.signal(SIGKILL);
      }
    }
    for (auto* const process : {&advance, &rollback}) {
      ASSERT_TRUE(process->wait(patience())) << process->collected_stderr();
    }
    const auto left = migrate({"status", "p"});
    // Who is killed between his two writes leaves a place closed, and that is told.
    const std::string alarm = round % 3 == 2 ? "has lost the record" : "ALARM";
    EXPECT_EQ(left.out.find(alarm), std::string::npos) << "round " << round << left.out;
    expect(0, {"rollback", "p", "--all"}, "in 'old'");
    const auto back = migrate({"status", "p"});
    EXPECT_EQ(back.out.find("ALARM"), std::string::npos) << "round " << round << back.out;
    EXPECT_EQ(back.out.find("CLOSING"), std::string::npos) << "round " << round << back.out;
  }
}

TEST_F(CliMigrate, ATargetThatIsTakenIsRefusedBeforeAnythingIsWritten) {
  write("dlock.yaml", "{ match: \"billing/**\", migrate: { from: new, to: third, plan: away } }");
  expect(0, {"start", "away", "billing/2"});
  expect(0, {"advance", "away", "--all"});
  expect(0, {"finish", "away", "--all"});
  write("dlock.yaml", "{ match: \"billing/**\", migrate: { from: old, to: new, plan: p } }");
  const std::string why =
      "'billing/2': plan 'away' has it in the store 'new', where it is FINAL and leads to 'third'";
  expect(kRefused, {"plan", "p", "billing/1", "billing/2"}, why);
  expect(kRefused, {"start", "p", "billing/1", "billing/2"}, why);
  expect(kRefused, {"status", "p"}, "was not started");
  const auto plan = migrate_json({"plan", "p", "billing/1", "billing/2"});
  ASSERT_EQ(plan.at("objections").as_array().size(), 1U);
  expect(0, {"start", "p", "billing/1"}, "started");
}

TEST_F(CliMigrate, AMovedLockWhosePlaceIsStillClosedIsAnAlarm) {
  start();
  expect(0, {"advance", "p", "--all"});
  expect(0, {"rollback", "p", "--all"});
  {
    // As if a command had died between the seal in the one store and the opening in the other.
    testkit::DirectClient client(url("new"));
    const auto left = client.record("billing/1").found;
    ASSERT_TRUE(left);
    expect(0, {"advance", "p", "--all"});
    const auto claim = client.acquire("billing/1");
    ASSERT_EQ(client.seal(claim, *left).status, RecordStatus::done);
  }
  expect(0, {"status", "p"}, "ALARM: it is moved to 'new', but its place there is still closed");
  EXPECT_EQ(lock_of("billing/1").at("alarms").as_array().size(), 1U);
  EXPECT_TRUE(lock_of("billing/2").at("alarms").as_array().empty());
  expect(0, {"advance", "p", "--name", "billing/1"});
  EXPECT_TRUE(lock_of("billing/1").at("alarms").as_array().empty());
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
  expect(kRefused, {"advance", "p", "--name", "billing/3"}, "is not in plan 'p'");
  // Nobody can tell when the locks of a store without leases are over.
  expect(0, {"advance", "p", "--all"});
  expect(kRefused, {"rollback", "p", "--all", "--target-gone"}, "");
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
  start();
  const auto steps = migrate_json({"advance", "p", "--all"});
  EXPECT_EQ(keys(steps), "plan from to max_lease_ms finished withdrawn locks");
  EXPECT_EQ(keys(steps.at("locks").as_array().at(0).as_object()),
            "name outcome state gen changed holder text");
  const auto status = migrate_json({"status", "p"});
  EXPECT_EQ(keys(status), "plan from to max_lease_ms finished next alarms locks");
  EXPECT_EQ(keys(status.at("locks").as_array().at(0).as_object()),
            "name state gen since_ms holder laggards alarms");
}

}  // namespace
}  // namespace dlock::cli_test
