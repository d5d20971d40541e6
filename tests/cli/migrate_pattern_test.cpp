// SPDX-License-Identifier: Apache-2.0
//
// `dlock migrate` in mode move governs the patterns of its route: names that nobody has listed, and
// those that are made later, between any two commands.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "tests/cli/migrate_stores.hpp"

namespace dlock::cli_test {
namespace {

namespace json = boost::json;
using testkit::Process;

class CliMigratePattern : public CliMigrate {
 protected:
  /// From `start` to `finish`, as it stands there.
  void run_plan(const std::string& file, const std::string& plan) const {
    for (const std::string verb : {"plan", "start"}) expect_with(file, 0, {verb, plan});
    for (const std::string verb : {"advance", "finish"})
      expect_with(file, 0, {verb, plan, "--all"});
  }
  /// Whoever has the plan's route holds it, and nobody with the target alone; and the other way
  /// round, once they may be there at all.
  void expect_one_holder(const std::string& name, int others, const std::string& where) const {
    {
      Holder held(hold("dlock.yaml", name));
      EXPECT_EQ(held.store(), where) << name;
      EXPECT_EQ(try_once("new.yaml", name), others) << name;
      EXPECT_EQ(try_once("dlock.yaml", name), kNotObtained) << name;
      held.let_go();
    }
    if (others != kNotObtained) return;
    Holder held(hold("new.yaml", name));
    EXPECT_EQ(try_once("dlock.yaml", name), kNotObtained) << name;
    EXPECT_GT(held.token(), 0);
  }
};

// Was a hole: the lock that was idle at `start` had two holders, with every command as the manual
// has it.
TEST_F(CliMigratePattern, ALockThatNobodyHadLockedHasNeverTwoHolders) {
  Holder a(hold("dlock.yaml", "billing/a"));
  expect(0, {"plan", "p"}, "billing/a");
  start();
  expect_one_holder("billing/started", kConfig, "old");
  expect(kWaits, {"advance", "p", "--all", "--wait", "0"}, a.name());
  expect_one_holder("billing/advancing", kConfig, "new");
  expect_one_holder("billing/started", kConfig, "new");
  a.let_go();
  expect(0, {"advance", "p", "--all"}, "made later: in 'new'");
  expect_one_holder("billing/advanced", kConfig, "new");
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
  for (const std::string name : {"b", "a", "started", "advancing", "advanced", "b/c/d"}) {
    expect_one_holder("billing/" + name, kNotObtained, "new");
  }
}

TEST_F(CliMigratePattern, ARefusalNamesTheLineThatIsRightDuringThePlanAndAfterFinish) {
  const auto refusal_of = [&](const std::string& file) {
    const auto result = finish(with(file, {"run", "billing/a", "--wait", "0", "--", "true"}));
    EXPECT_EQ(result.status.shell_status(), kConfig) << file << result.err;
    return result.err;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  token("old.yaml", "billing/a");
  start();
  expect(0, {"advance", "p", "--all"});
  token("dlock.yaml", "billing/a");
  const auto of_old = refusal_of("old.yaml");
  EXPECT_TRUE(has(of_old, "migrate: { from: old, to: new, plan: p }")) << of_old;
  const auto of_new = refusal_of("new.yaml");
  EXPECT_TRUE(has(of_new, "migrate: { from: old, to: new, plan: p }")) << of_new;
  EXPECT_TRUE(has(of_new, "`dlock migrate finish p --all`")) << of_new;
  EXPECT_FALSE(has(of_new, "`require`")) << of_new;
  const auto incomplete = migrate({"finish", "p"});
  EXPECT_EQ(incomplete.status.shell_status(), kUsage);
  EXPECT_TRUE(has(incomplete.err, "`dlock migrate finish p --all`")) << incomplete.err;
  EXPECT_FALSE(has(incomplete.err, "--name")) << incomplete.err;
  expect(0, {"finish", "p", "--all"}, "write `store: new` instead of `migrate`");
  const auto after = refusal_of("old.yaml");
  EXPECT_TRUE(has(after, "`- { match: \"billing/a\", store: new }`")) << after;
  EXPECT_FALSE(has(after, "migrate:")) << after;
}

// While all go to the target, and the same back: it waits for whoever has been there before.
TEST_F(CliMigratePattern, ARollbackOfAllTakesTheLocksAlongThatWereMadeInTheTarget) {
  start();
  expect(0, {"advance", "p", "--all"});
  Holder held(hold("dlock.yaml", "billing/made-in-new"));
  EXPECT_EQ(held.store(), "new");
  expect(kWaits, {"rollback", "p", "--all", "--wait", "0"}, held.name());
  EXPECT_EQ(try_once("dlock.yaml", "billing/made-in-new"), kNotObtained);
  expect_one_holder("billing/made-meanwhile", kConfig, "old");
  held.let_go();
  expect(0, {"rollback", "p", "--all"}, "billing/made-in-new: in 'old'");
  expect_one_holder("billing/made-in-new", kConfig, "old");
  EXPECT_GT(token("dlock.yaml", "billing/made-in-new"), held.token());
}

TEST_F(CliMigratePattern, NothingHeldIsNoError) {
  expect(0, {"plan", "p"}, "none is held there now");
  expect(0, {"start", "p"}, "none is held there now");
  expect(0, {"status", "p"}, "advance p --all");
  expect(0, {"advance", "p", "--all"}, "made later: in 'new'");
  expect(0, {"status", "p"}, "finish p --all");
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
  expect_one_holder("billing/first", kNotObtained, "new");
}

TEST_F(CliMigratePattern, FinishTurnsByItself) {
  start();
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
  expect_one_holder("billing/first", kNotObtained, "new");
}

TEST_F(CliMigratePattern, NothingHeldComesBackToo) {
  start();
  expect(0, {"rollback", "p", "--all"}, "made later: in 'old'");
  expect(0, {"advance", "p", "--all"}, "made later: in 'new'");
  expect(0, {"rollback", "p", "--all"}, "made later: in 'old'");
  expect_one_holder("billing/first", kConfig, "old");
}

// $DLOCK_TOKEN of one name after another, in whichever store it is.
TEST_F(CliMigratePattern, TokensRiseThroughAllStepsForTheRouteAndForTheTargetAlone) {
  // The source has given many by then, the target none.
  for (int i = 0; i < 4; ++i) token("old.yaml", "billing/idle");
  std::map<std::string, std::int64_t> last;
  const auto lock = [&](const std::string& file, const std::string& name) {
    const auto now = token(file, name);
    EXPECT_GT(now, last[name]) << file << " " << name;
    last[name] = now;
  };
  // Made at one step, and locked at every one after it.
  const auto lock_all = [&](const std::string& file, const std::string& made) {
    last.emplace("billing/" + made, 0);
    for (const auto& known : std::map(last)) lock(file, known.first);
  };
  const auto idle = token("old.yaml", "billing/idle");
  const auto unused = token("old.yaml", "billing/unused");
  lock_all("dlock.yaml", "before");
  start();
  lock_all("dlock.yaml", "started");
  expect(0, {"advance", "p", "--all"});
  lock_all("dlock.yaml", "advanced");
  expect(0, {"rollback", "p", "--all"});
  lock_all("dlock.yaml", "back");
  expect(0, {"advance", "p", "--all"});
  const auto moved = token("dlock.yaml", "billing/unused");
  EXPECT_GT(moved, unused);
  lock_all("dlock.yaml", "again");
  expect(0, {"finish", "p", "--all"});
  lock_all("dlock.yaml", "finished");
  lock_all("new.yaml", "home");
  lock_all("dlock.yaml", "with-route-again");
  // In the source only before, and now in the target only.
  EXPECT_GT(token("new.yaml", "billing/idle"), idle);
  EXPECT_GT(token("new.yaml", "billing/unused"), moved);
}

TEST_F(CliMigratePattern, PlansWhosePatternsMeetAreRefused) {
  write("dlock.yaml", route_of("p", "a*/x"));
  start();
  // Neither has all names of the other; 'ab/x' is of both.
  write("q.yaml", route_of("q", "ab/*"));
  for (const std::string verb : {"plan", "start"}) {
    expect_with("q.yaml", kRefused, {verb, "q"}, "belongs to the unfinished plan 'p'");
  }
  write("back.yaml", route_of("back", "ab/*", "new", "old"));
  expect_with("back.yaml", kRefused, {"start", "back"}, "belongs to the unfinished plan 'p'");
  write("onward.yaml", route_of("onward", "ab/*", "new", "third"));
  expect_with("onward.yaml", kRefused, {"start", "onward"}, "belongs to the unfinished plan 'p'");
  write("r.yaml", route_of("r", "b*/x"));
  expect_with("r.yaml", 0, {"start", "r"}, "started");
  expect(0, {"finish", "p", "--all"});
  expect_with("q.yaml", kRefused, {"start", "q"}, "plan 'p' has taken");
}

TEST_F(CliMigratePattern, ThePlanBackHasNamesThatTheFirstNeverListed) {
  Holder listed(hold("dlock.yaml", "billing/listed"));
  start();
  expect(kWaits, {"finish", "p", "--all", "--wait", "0"}, listed.name());
  listed.let_go();
  expect(0, {"finish", "p", "--all"});
  const auto only_new = token("new.yaml", "billing/only-in-new");
  const std::string why = "plan 'p' has taken 'billing/**' from 'old' to 'new' and is finished";
  write("again.yaml", route_of("q"));
  for (const std::string verb : {"plan", "start"})
    expect_with("again.yaml", kRefused, {verb, "q"}, why);
  write("back.yaml", route_of("back", "billing/**", "new", "old"));
  Holder held(hold("new.yaml", "billing/held"));
  expect_with("back.yaml", kRefused, {"start", "back"}, "dlock (pid " + std::to_string(held.pid()));
  expect_with("back.yaml", 0, {"start", "back", "--yes"}, "started");
  expect_with("again.yaml", kRefused, {"start", "q"}, "plan '");
  expect_with("back.yaml", kWaits, {"advance", "back", "--all", "--wait", "0"}, held.name());
  EXPECT_EQ(Holder(hold("back.yaml", "billing/only-in-new")).store(), "old");
  EXPECT_EQ(Holder(hold("back.yaml", "billing/listed")).store(), "old");
  EXPECT_EQ(Holder(hold("back.yaml", "billing/nobodys")).store(), "old");
  held.let_go();
  expect_with("back.yaml", 0, {"advance", "back", "--all"}, "made later: in 'old'");
  expect_with("again.yaml", kRefused, {"start", "q"}, "plan '");
  expect_with("back.yaml", 0, {"finish", "back", "--all"}, "plan back is finished");
  EXPECT_GT(token("old.yaml", "billing/held"), held.token());
  EXPECT_GT(token("old.yaml", "billing/only-in-new"), only_new);
  EXPECT_GT(token("old.yaml", "billing/listed"), listed.token());
  // And there again, now that all is back.
  run_plan("again.yaml", "q");
  EXPECT_EQ(Holder(hold("again.yaml", "billing/nobodys")).store(), "new");
  EXPECT_GT(token("new.yaml", "billing/held"), held.token());
}

// What was moved there and back has left its place in 'new' closed. The plan back did not get past
// that, and nobody with its route could lock it.
TEST_F(CliMigratePattern, ThePlanBackPassesWhatTheFirstHasLeftClosed) {
  start();
  expect(0, {"advance", "p", "--name", "billing/1", "--name", "billing/2"});
  expect(0, {"rollback", "p", "--all"}, "billing/1: in 'old'");
  const auto before = token("dlock.yaml", "billing/1");
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
  write("back.yaml", route_of("back", "billing/**", "new", "old"));
  expect_with("back.yaml", 0, {"start", "back"}, "started");
  const auto seen = migrate_with("back.yaml", {"status", "back"});
  EXPECT_EQ(seen.out.find("ALARM"), std::string::npos) << seen.out;
  const auto in_new = token("back.yaml", "billing/1");
  EXPECT_GT(in_new, before);
  expect_with("back.yaml", 0, {"advance", "back", "--all"});
  expect_with("back.yaml", 0, {"rollback", "back", "--all", "--withdraw"}, "withdrawn");
  run_plan("back.yaml", "back");
  EXPECT_GT(token("back.yaml", "billing/1"), in_new);
  EXPECT_GT(token("old.yaml", "billing/2"), 0);
}

// Nobody has locked it between the two plans, so that the second one's source has given no token.
TEST_F(CliMigratePattern, ALockThatWasBroughtBackAndNotUsedIsOpenAfterTheNextPlan) {
  std::int64_t before = 0;
  for (int i = 0; i < 4; ++i) before = token("new.yaml", "billing/1");
  write("back.yaml", route_of("back", "billing/**", "new", "old"));
  expect_with("back.yaml", 0, {"start", "back"});
  expect_with("back.yaml", 0, {"advance", "back", "--name", "billing/1"}, "moved to 'old'");
  expect_with("back.yaml", 0, {"finish", "back", "--all"});
  run_plan("dlock.yaml", "p");
  const auto after = token("dlock.yaml", "billing/1");
  EXPECT_GT(after, before);
  EXPECT_GT(token("new.yaml", "billing/1"), after);
}

TEST_F(CliMigratePattern, AWithdrawnPlanMayBeStartedAgainAndFinished) {
  const std::string name = "billing/1";
  auto before = token("dlock.yaml", name);
  const auto rises = [&](const std::string& file) {
    const auto now = token(file, name);
    EXPECT_GT(now, before) << file;
    before = now;
  };
  for (int i = 0; i < 2; ++i) {
    start();
    rises("dlock.yaml");
    expect(0, {"advance", "p", "--all"});
    rises("dlock.yaml");
    EXPECT_EQ(Holder(hold("dlock.yaml", "billing/made-" + std::to_string(i))).store(), "new");
    expect(0, {"rollback", "p", "--all", "--withdraw"}, "plan p is withdrawn");
    expect(kRefused, {"status", "p"}, "was not started");
    expect(kRefused, {"advance", "p", "--all"}, "was not started");
    rises("dlock.yaml");
    EXPECT_EQ(Holder(hold("dlock.yaml", "billing/made-" + std::to_string(i))).store(), "old");
    EXPECT_EQ(try_once("old.yaml", name), 0);
  }
  run_plan("dlock.yaml", "p");
  rises("dlock.yaml");
  rises("new.yaml");
  expect_one_holder("billing/made-1", kNotObtained, "new");
}

// A withdrawal that waits for a holder is gone on with, and not turned to an advance meanwhile.
TEST_F(CliMigratePattern, AWithdrawalThatWaitsIsEndedByRunningItAgain) {
  start();
  expect(0, {"advance", "p", "--all"});
  Holder held(hold("dlock.yaml", "billing/1"));
  EXPECT_EQ(held.store(), "new");
  expect(kWaits, {"rollback", "p", "--all", "--withdraw", "--wait", "0"}, held.name());
  EXPECT_EQ(gate(), "ENDED");
  expect(0, {"status", "p"}, "it is being withdrawn");
  for (const std::string verb : {"advance", "finish"}) {
    expect(kRefused, {verb, "p", "--all"}, "is being withdrawn");
  }
  expect(kRefused, {"advance", "p", "--name", "billing/2"}, "is being withdrawn");
  EXPECT_EQ(Holder(hold("dlock.yaml", "billing/2")).store(), "old");
  held.let_go();
  expect(0, {"rollback", "p", "--all", "--withdraw"}, "plan p is withdrawn");
  EXPECT_EQ(Holder(hold("dlock.yaml", "billing/1")).store(), "old");
}

TEST_F(CliMigratePattern, WhoDoesNotTakePartIsNamedAndYesIsAskedFor) {
  Holder stranger(hold("old.yaml", "billing/1"));
  Process waits(with("old.yaml", {"hold", "billing/1"}));
  const auto waiter = "waits for 'billing/1' in 'old' and does not take part: dlock (pid " +
                      std::to_string(waits.pid());
  EXPECT_TRUE(testkit::eventually(patience(), [&] {
    return migrate({"plan", "p"}).out.find(waiter) != std::string::npos;
  }));
  const auto holder = "holds 'billing/1' in 'old' and does not take part: " + stranger.name();
  expect(0, {"plan", "p"}, holder);
  expect(kRefused, {"start", "p"}, "2 programs in 'old' lock without the plan's route");
  expect(kRefused, {"start", "p"}, holder);
  expect(kRefused, {"status", "p"}, "was not started");
  const auto refused = migrate_json({"start", "p"});
  EXPECT_EQ(refused.at("started"), json::value(false));
  ASSERT_EQ(refused.at("strangers").as_array().size(), 2U);
  const auto& first = refused.at("strangers").as_array().at(0).as_object();
  EXPECT_EQ(first.at("pid"), json::value(stranger.pid()));
  EXPECT_EQ(first.at("name"), json::value("billing/1"));
  EXPECT_EQ(first.at("holds"), json::value(true));
  expect(0, {"start", "p", "--yes"}, "started");
  waits.close_stdin();
  ASSERT_TRUE(waits.signal(SIGTERM));
  ended(waits);
  expect(kWaits, {"advance", "p", "--all", "--wait", "0"}, stranger.name());
  stranger.let_go();
  expect(0, {"advance", "p", "--all"}, "made later: in 'new'");
  // On a lock that it is not kept from, it is seen by `finish`; those with the route wait for it.
  Holder late(hold("old.yaml", "billing/2"));
  EXPECT_EQ(try_once("dlock.yaml", "billing/2"), kNotObtained);
  expect(kWaits, {"finish", "p", "--all", "--wait", "0"}, late.name());
  EXPECT_EQ(gate(), "TURNED");
  late.let_go();
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
}

// It waits behind a record, where it gets nothing; after `finish` nothing would stop it elsewhere.
TEST_F(CliMigratePattern, FinishWantsYesWhileAProgramInTheSourceDoesNotTakePart) {
  start();
  Holder one(hold("dlock.yaml", "billing/1"));
  Process waits(with("old.yaml", {"hold", "billing/1"}));
  const auto waiter = "waits for 'billing/1' in 'old' and does not take part: dlock (pid " +
                      std::to_string(waits.pid());
  EXPECT_TRUE(testkit::eventually(patience(), [&] {
    return migrate({"plan", "p"}).out.find(waiter) != std::string::npos;
  }));
  Process drain(with("dlock.yaml", {"migrate", "advance", "p", "--all", "--wait", "forever"}));
  EXPECT_TRUE(testkit::eventually(patience(), [&] { return gate() == "TURNED"; }));
  one.let_go();
  // The one that has waited is granted from under the open gate, and is waited for.
  EXPECT_EQ(text(read_event(waits), "store"), "old");
  Process second(with("old.yaml", {"hold", "billing/1"}));
  waits.close_stdin();
  EXPECT_EQ(ended(drain), 0) << drain.collected_stderr();
  ended(second);  // told what to write
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
}

TEST_F(CliMigratePattern, ARouteBeforeThatTakesNamesOfThePlanIsRefused) {
  write("dlock.yaml", {"{ match: \"billing/special/*\", store: third }", route_of("p")});
  // The file's line with that route.
  const std::string why = path("dlock.yaml") + ":6";
  for (const std::string verb : {"plan", "start"}) {
    expect(kRefused, {verb, "p"}, why);
    expect(kRefused, {verb, "p"},
           "the route of 'billing/special/*' comes before that of 'billing/**'");
  }
  expect(kRefused, {"start", "p", "--yes"}, why);
  expect(kRefused, {"status", "p"}, "was not started");
  // One that meets no name of it, one behind it, and one that has the plan as well.
  write("dlock.yaml", {"{ match: \"other/*\", store: third }", route_of("p", "billing/special/*"),
                       route_of("p"), "{ match: \"billing/*\", store: third }"});
  expect(0, {"start", "p"}, "'billing/**' and 'billing/special/*'");
  expect(0, {"finish", "p", "--all"});
  EXPECT_EQ(Holder(hold("dlock.yaml", "billing/special/1")).store(), "new");
}

// Its programs would use the plan's gate for locks that the plan does not have.
TEST_F(CliMigratePattern, ARouteThatIsWiderThanThePlanIsRefused) {
  start();
  write("dlock.yaml", {route_of("p"), route_of("p", "orders/*")});
  for (const std::string verb : {"plan", "start"}) expect(kRefused, {verb, "p"}, "orders/*");
  for (const std::string verb : {"advance", "finish"}) {
    expect(kRefused, {verb, "p", "--all"}, "orders/*");
  }
  expect(0, {"rollback", "p", "--all", "--withdraw"}, "withdrawn");
  start();
  EXPECT_EQ(migrate_json({"start", "p"}).at("patterns"), (json::array{"billing/**", "orders/*"}));
  // Part of it is no harm.
  write("dlock.yaml", route_of("p", "billing/a/*"));
  expect(0, {"start", "p"}, "started");
  expect(0, {"finish", "p", "--all"}, "plan p is finished");
}

/// One after the other, in both directions in turn: `advance` and `rollback` at once, then
/// `finish`, each killed at a random moment, while two programs lock names of every age.
class CliMigrateKilled : public CliMigratePattern {
 protected:
  struct Round {
    int number = 0;
    std::string plan;
    std::string file;   ///< of who takes part
    std::string there;  ///< of who knows its target alone
    bool kills = false;
  };

  Round round_of(int number) const {
    const bool back = number % 2 != 0;
    Round round;
    round.number = number;
    round.plan = "r" + std::to_string(number);
    round.file = round.plan + ".yaml";
    round.there = back ? "old.yaml" : "new.yaml";
    round.kills = number % 3 != 0;
    write(round.file,
          route_of(round.plan, "billing/**", back ? "new" : "old", back ? "old" : "new"));
    return round;
  }

  /// In the lock: nobody else is, and the tokens of the name are written down in their order.
  testkit::ProcessOptions work(const std::string& file, const std::string& name) const {
    const auto place = path("in-" + name.substr(name.find('/') + 1));
    return with(
        file, {"run", name, "--wait", "60s", "--", "sh", "-c",
               "mkdir \"$0\" || exit 99; echo $DLOCK_TOKEN >> \"$0.tokens\"; rmdir \"$0\"", place});
  }
  void expect_tokens_rise(const std::string& name) const {
    std::ifstream lines(path("in-" + name.substr(name.find('/') + 1) + ".tokens"));
    std::int64_t before = 0;
    for (std::int64_t now = 0; lines >> now; before = now) EXPECT_GT(now, before) << name;
  }

  /// Made at every moment; each is locked again later, when it is in some other place.
  class Locker {
   public:
    Locker(const CliMigrateKilled& test, const Round& round, int number)
        : thread_([&test, round, number, this] {
            for (int i = 0; !stopped_ || i < 3; ++i) {
              const auto name = "billing/" + std::to_string(round.number) + "-" +
                                std::to_string(i % 2 == 0 ? i : i / 2);
              const auto done = finish(test.work(round.file, name));
              if (done.status.shell_status() != 0) {
                failures_ += name + " as " + std::to_string(number) + ": " +
                             std::to_string(done.status.shell_status()) + " " + done.err + "\n";
              }
              names_.push_back(name);
            }
          }) {}
    ~Locker() { stop(); }
    Locker(const Locker&) = delete;
    Locker& operator=(const Locker&) = delete;
    void stop() {
      stopped_ = true;
      if (thread_.joinable()) thread_.join();
    }
    /// Of one that has been stopped.
    const std::string& failures() const { return failures_; }
    const std::vector<std::string>& names() const { return names_; }

   private:
    std::atomic<bool> stopped_{false};
    std::string failures_;
    std::vector<std::string> names_;
    std::thread thread_;
  };

  testkit::ProcessOptions command(const Round& round, const std::string& verb) const {
    return with(round.file, {"migrate", verb, round.plan, "--all"});
  }
  void end(Process& process, bool kill) {
    if (kill && !process.wait(testkit::within(std::chrono::milliseconds(random_() % 60)))) {
      process.signal(SIGKILL);
    }
    ASSERT_TRUE(process.wait(patience())) << process.collected_stderr();
  }
  void expect_no(const Round& round, const std::vector<std::string>& words) const {
    const auto seen = migrate_with(round.file, {"status", round.plan});
    EXPECT_EQ(seen.status.shell_status(), 0) << seen.err;
    for (const auto& word : words) {
      EXPECT_EQ(seen.out.find(word), std::string::npos) << round.plan << ": " << seen.out;
    }
  }

  void there_and_back_at_once(const Round& round) {
    Process advance(command(round, "advance"));
    Process rollback(command(round, "rollback"));
    const bool first = random_() % 2 == 0;
    end(advance, round.kills && first);
    end(rollback, round.kills && !first);
    // Who is killed between his two writes leaves a place closed, and that is told.
    expect_no(round, {round.kills ? "has lost the record" : "ALARM"});
  }

  std::mt19937 random_{std::random_device{}()};
};

// DLOCK_ROUNDS: how many.
TEST_F(CliMigrateKilled, AdvanceAndRollbackAtOnceLeaveNoFalseAlarmAndNothingClosed) {
  const char* const rounds = std::getenv("DLOCK_ROUNDS");
  const int most = rounds != nullptr ? std::atoi(rounds) : 6;
  for (int number = 0; number < most && !HasFailure(); ++number) {
    const auto round = round_of(number);
    expect_with(round.file, 0, {"start", round.plan}, "started");
    Locker one(*this, round, 1);
    Locker two(*this, round, 2);
    there_and_back_at_once(round);
    expect_with(round.file, 0, {"rollback", round.plan, "--all"});
    expect_no(round, {"ALARM", "on its way back"});
    there_and_back_at_once(round);
    if (round.kills) {
      Process killed(command(round, "finish"));
      end(killed, true);
    }
    expect_with(round.file, 0, {"finish", round.plan, "--all"}, "is finished");
    for (auto* const locker : {&one, &two}) {
      locker->stop();
      EXPECT_EQ(locker->failures(), "");
    }
    expect_no(round, {"ALARM", "on its way back"});
    // Every name, new ones too, for the route and for the target alone.
    auto names = one.names();
    names.resize(3);
    names.push_back("billing/after-" + std::to_string(number));
    for (const auto& name : names) {
      for (const auto& file : {round.there, round.file}) {
        const auto done = finish(work(file, name));
        EXPECT_EQ(done.status.shell_status(), 0) << file << name << done.err;
      }
    }
    for (const auto& name : one.names()) expect_tokens_rise(name);
  }
}

}  // namespace
}  // namespace dlock::cli_test
