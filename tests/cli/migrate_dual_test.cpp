// SPDX-License-Identifier: Apache-2.0
//
// `dlock migrate` in mode dual, over two local stores: every verb, every exit status, what it says
// and to whom.
#include <csignal>
#include <fstream>

#include "tests/cli/cli_support.hpp"
#include "tests/support/direct_client.hpp"

namespace dlock::cli_test {
namespace {

namespace json = boost::json;
using testkit::Process;

constexpr int kWaits = 3;
constexpr int kRefused = 4;
constexpr int kUsage = 64;
constexpr int kConfig = 78;

/// Two stores, and the configurations of each phase and of those who know one store alone.
class CliDual : public testing::Test {
 protected:
  CliDual() {
    for (int phase = 0; phase <= 2; ++phase) write_phase(phase);
    write("old.yaml", "{ match: \"**\", store: old }");
    write("new.yaml", "{ match: \"**\", store: new }");
  }

  void write_phase(int phase, const std::string& more = {}) const {
    write(config(phase),
          "{ match: \"billing/**\", migrate: { from: old, to: new, plan: p, mode: dual, phase: " +
              std::to_string(phase) + more + " } }");
  }
  void write(const std::string& file, const std::string& route) const {
    std::ofstream(path(file)) << "stores:\n  old: \"" << url("old") << "\"\n  new: \"" << url("new")
                              << "\"\n  third: \"" << url("third") << "\"\nlocks:\n  - " << route
                              << "\n";
  }
  static std::string config(int phase) { return "phase" + std::to_string(phase) + ".yaml"; }
  std::string url(const std::string& store) const {
    return "file://" + (folder_.path() / store).string();
  }
  std::string path(const std::string& file) const { return (folder_.path() / file).string(); }

  testkit::ProcessOptions with(const std::string& file, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--config", path(file)});
    return dlock(std::move(arguments));
  }
  testkit::ProcessOptions hold(int phase) const {
    return with(config(phase), {"hold", "billing/1", "--wait", "30s"});
  }
  testkit::Finished migrate(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "migrate");
    return finish(with(config(0), std::move(arguments)));
  }
  void expect(int status, std::vector<std::string> arguments, const std::string& part = {}) const {
    std::string line;
    for (const auto& word : arguments) line += word + ' ';
    const auto result = migrate(std::move(arguments));
    EXPECT_EQ(result.status.shell_status(), status) << line << ": " << result.out << result.err;
    EXPECT_NE((result.out + result.err).find(part), std::string::npos)
        << line << ": " << part << " is not in: " << result.out << result.err;
  }
  json::object migrate_json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const auto result = migrate(std::move(arguments));
    json::error_code error;
    const auto value = json::parse(result.out, error);
    EXPECT_TRUE(!error && value.is_object()) << result.out << result.err;
    return !error && value.is_object() ? value.as_object() : json::object();
  }
  std::pair<std::int64_t, std::int64_t> window() const {
    const auto status = migrate_json({"status", "p"});
    const auto* window = status.if_contains("window");
    if (window == nullptr || !window->is_object()) return {-1, -1};
    return {window->at("lo").to_number<int>(), window->at("hi").to_number<int>()};
  }
  void start() const { expect(0, {"start", "p"}); }
  void advance(int lo, int hi) const {
    expect(0, {"advance", "p", "--legacy-gone", "--wait", "30s"});
    EXPECT_EQ(window(), std::pair(std::int64_t{lo}, std::int64_t{hi}));
  }
  /// Held, and given back: the token.
  std::int64_t once(int phase, const std::string& store) const {
    Process process(hold(phase));
    const auto held = read_event(process);
    EXPECT_EQ(text(held, "store"), store) << process.collected_stderr();
    if (!held.contains("token")) return 0;
    process.close_stdin();
    const auto ended = process.wait(patience());
    EXPECT_TRUE(ended && ended->success()) << process.collected_stderr();
    return held.at("token").to_number<std::int64_t>();
  }
  void forget_window() const {
    testkit::DirectClient client(url("new"));
    const auto note = client.note("window/p").found;
    ASSERT_TRUE(note);
    ASSERT_EQ(client.set_note("window/p", note, std::nullopt).status, RecordStatus::done);
  }

  testkit::TempDir folder_{"dlock-dual-test"};
};

TEST_F(CliDual, FromPlanToFinish) {
  expect(0, {"plan", "p"}, "mode dual, from 'old' to 'new', window in 'new'");
  expect(kRefused, {"status", "p"}, "was not started");
  expect(kRefused, {"advance", "p"}, "was not started");
  start();
  start();  // again
  expect(kRefused, {"start", "p", "billing/1"}, "about something else");
  EXPECT_EQ(window(), std::pair(std::int64_t{0}, std::int64_t{0}));
  const auto first = once(0, "old");
  expect(kRefused, {"finish", "p"}, "advance");
  advance(0, 1);
  const auto second = once(1, "new");
  EXPECT_GT(second, first);
  EXPECT_GT(once(0, "old"), second);
  advance(1, 1);
  EXPECT_EQ(finish(hold(0)).status.shell_status(), kConfig);
  advance(1, 2);
  const auto third = once(2, "new");
  EXPECT_GT(third, second);
  EXPECT_GT(once(1, "new"), third);
  advance(2, 2);
  expect(0, {"advance", "p"}, "finish");  // it is there
  expect(0, {"finish", "p"}, "plan p is finished");
  expect(0, {"finish", "p"});  // again
  expect(kRefused, {"rollback", "p"}, "a plan of its own");
  expect(0, {"status", "p"}, "finished");
  Process home(with("new.yaml", {"hold", "billing/1"}));
  EXPECT_GT(read_event(home).at("token").to_number<std::int64_t>(), third);
}

// Programs of a finished plan lock the target alone: one of a plan that begins in the source anew
// would have locked beside them.
TEST_F(CliDual, AfterAFinishAPlanThatBeginsInTheSourceIsRefusedUntilAllIsBack) {
  const auto through = [&](const std::string& plan, const std::string& from,
                           const std::string& to) {
    write(config(0), "{ match: \"billing/**\", migrate: { from: " + from + ", to: " + to +
                         ", plan: " + plan + ", mode: dual, phase: 0 } }");
    expect(0, {"start", plan});
    for (int i = 0; i < 4; ++i) expect(0, {"advance", plan, "--legacy-gone", "--wait", "30s"});
    expect(0, {"finish", plan}, "is finished");
  };
  const auto route = [&](const std::string& name, const std::string& match,
                         const std::string& more) {
    write(name + ".yaml", "{ match: \"" + match +
                              "\", migrate: { from: old, to: new, plan: " + name + more + " } }");
  };
  through("p", "old", "new");
  Process last(hold(0));  // its route is of the finished plan: refused, as phase 0 is closed
  EXPECT_FALSE(last.wait(patience())->success());
  write_phase(2);
  Process home(hold(2));
  EXPECT_EQ(text(read_event(home), "store"), "new");

  route("again", "billing/**", ", mode: dual, phase: 0");
  route("moves", "billing/**", "");
  route("other", "mail/**", ", mode: dual, phase: 0");
  const auto as = [&](const std::string& name, const std::string& verb) {
    std::vector<std::string> arguments = {"migrate", verb, name};
    if (name == "again") arguments.emplace_back("billing/1");
    return finish(with(name + ".yaml", arguments));
  };
  for (const std::string name : {"again", "moves"}) {
    for (const std::string verb : {"plan", "start", "start"}) {
      const auto refused = as(name, verb);
      EXPECT_EQ(refused.status.shell_status(), kRefused) << name << verb;
      EXPECT_NE((refused.out + refused.err).find("plan 'p' has taken 'billing/"), std::string::npos)
          << refused.out << refused.err;
    }
  }
  EXPECT_EQ(finish(with("other.yaml", {"migrate", "start", "other"})).status.shell_status(), 0);
  home.close_stdin();
  ASSERT_TRUE(home.wait(patience()));

  through("back", "new", "old");
  EXPECT_EQ(as("again", "start").status.shell_status(), 0);
}

TEST_F(CliDual, ProgramsOfTheNextPhaseMeetThoseOfTheLast) {
  start();
  advance(0, 1);
  Process old(hold(0));
  ASSERT_EQ(text(read_event(old), "store"), "old");
  for (const int phase : {0, 1}) {
    const auto busy = finish(with(config(phase), {"hold", "billing/1", "--wait", "0"}));
    EXPECT_EQ(busy.status.shell_status(), 75) << busy.err;
  }
  old.close_stdin();
  EXPECT_GT(once(1, "new"), 0);
}

TEST_F(CliDual, AClosingWaitsForThoseItWouldShutOutAndNamesThem) {
  start();
  advance(0, 1);
  Process old(hold(0));
  read_event(old);
  const auto who = "(pid " + std::to_string(old.pid()) + " on ";
  expect(kWaits, {"advance", "p", "--wait", "0"}, who);
  expect(kWaits, {"advance", "p", "--wait", "200ms"}, who);
  const auto waits = migrate_json({"advance", "p", "--wait", "0"});
  EXPECT_EQ(text(waits, "outcome"), "waiting");
  ASSERT_EQ(waits.at("waits_for").as_array().size(), 1U);
  EXPECT_EQ(waits.at("waits_for").as_array()[0].at("pid"), json::value(old.pid()));
  EXPECT_EQ(window(), std::pair(std::int64_t{0}, std::int64_t{1}));

  Process advance(with(config(0), {"migrate", "advance", "p", "--wait", "forever"}));
  EXPECT_TRUE(advance.stderr_shows(who, patience())) << advance.collected_stderr();
  old.close_stdin();
  const auto ended = advance.wait(patience());
  EXPECT_TRUE(ended && ended->success()) << advance.collected_stderr();
  EXPECT_EQ(window(), std::pair(std::int64_t{1}, std::int64_t{1}));
}

TEST_F(CliDual, AProgramThatDiedCountsForARegistration) {
  expect(0, {"start", "p", "billing/1", "--registration", "1s"});
  advance(0, 1);
  Process old(hold(0));
  read_event(old);
  old.kill_and_wait();
  expect(kWaits, {"advance", "p", "--wait", "0"}, std::to_string(old.pid()));
  expect(0, {"advance", "p", "--wait", "30s"});
  EXPECT_EQ(window(), std::pair(std::int64_t{1}, std::int64_t{1}));
}

TEST_F(CliDual, StatusSaysInWordsHowItStands) {
  start();
  expect(0, {"status", "p"}, "window: phase 0 is admitted");
  Process old(hold(0));
  read_event(old);
  advance(0, 1);
  expect(0, {"status", "p"}, "window: phases 0 and 1 are admitted");
  expect(0, {"status", "p"}, "phase 0 locks 'old': 1 registered");
  expect(0, {"status", "p"}, "(pid " + std::to_string(old.pid()) + " on ");
  expect(0, {"status", "p"}, "phase 1 locks 'old', then 'new': nobody is registered");
  expect(0, {"status", "p"}, "write `phase: 1` instead of `phase: 0`");
  expect(0, {"status", "p"}, "dlock migrate advance p");
}

TEST_F(CliDual, StrangersAreNamedAndBarTheWay) {
  start();
  advance(0, 1);
  advance(1, 1);
  expect(kRefused, {"advance", "p"}, "--legacy-gone");
  Process legacy(with("old.yaml", {"hold", "billing/1"}));
  read_event(legacy);
  const auto who = "(pid " + std::to_string(legacy.pid()) + " on ";
  expect(0, {"status", "p"}, who);
  const auto status = migrate_json({"status", "p"});
  ASSERT_EQ(status.at("strangers").as_array().size(), 1U);
  EXPECT_EQ(status.at("strangers").as_array()[0].at("name"), "billing/1");
  expect(kRefused, {"advance", "p", "--legacy-gone", "--wait", "30s"}, who);
  legacy.close_stdin();
  ASSERT_TRUE(legacy.wait(patience()));
  advance(1, 2);
}

TEST_F(CliDual, BackFromEverywhereAndWithdrawn) {
  start();
  const auto back = [&](int lo, int hi) {
    expect(0, {"rollback", "p", "--legacy-gone", "--wait", "30s"});
    EXPECT_EQ(window(), std::pair(std::int64_t{lo}, std::int64_t{hi}));
  };
  advance(0, 1);
  back(0, 0);
  for (const auto& [lo, hi] : {std::pair(0, 1), std::pair(1, 1), std::pair(1, 2), std::pair(2, 2)})
    advance(lo, hi);
  const auto top = once(2, "new");
  back(1, 2);
  back(1, 1);
  expect(kRefused, {"rollback", "p"}, "--legacy-gone");
  back(0, 1);
  EXPECT_GT(once(0, "old"), top);
  expect(kUsage, {"rollback", "p", "--withdraw"}, "add --all");
  expect(0, {"rollback", "p", "--all", "--withdraw"}, "withdrawn");
  expect(kRefused, {"status", "p"}, "was not started");
  start();
}

// A killed program is still registered: it is over with its lease, though nobody else ever comes.
TEST_F(CliDual, WithdrawnThoughItsLastProgramWasKilled) {
  expect(0, {"start", "p", "billing/1", "--registration", "500ms"});
  Process killed(hold(0));
  read_event(killed);
  expect(kWaits, {"rollback", "p", "--all", "--withdraw", "--wait", "2s"},
         "waits for a program that takes part: ");
  ASSERT_TRUE(killed.signal(SIGKILL));
  ASSERT_TRUE(killed.wait(patience()));
  expect(0, {"rollback", "p", "--all", "--withdraw", "--wait", "30s"}, "withdrawn");
  expect(kRefused, {"status", "p"}, "was not started");
}

TEST_F(CliDual, ALostWindowStopsEverybodyUntilItIsRestored) {
  expect(0, {"start", "p", "billing/1", "--registration", "500ms"});
  advance(0, 1);
  advance(1, 1);
  const auto before = once(1, "new");
  forget_window();
  const auto stopped = finish(with(config(1), {"hold", "billing/1", "--wait", "1s"}));
  EXPECT_NE(stopped.status.shell_status(), 0);
  EXPECT_NE(stopped.err.find("the window is lost"), std::string::npos) << stopped.err;
  expect(0, {"status", "p"}, "--at");
  expect(kRefused, {"advance", "p"}, "--at");
  expect(kRefused, {"start", "p"}, "--at");
  expect(0, {"start", "p", "--at", "1,1", "--wait", "30s"});
  EXPECT_EQ(window(), std::pair(std::int64_t{1}, std::int64_t{1}));
  EXPECT_GT(once(1, "new"), before);
  expect(kRefused, {"start", "p", "--at", "0,1"}, "the window is there");
}

// Programs of both plans held the lock at once.
TEST_F(CliDual, ARefusedStartAdmitsNobody) {
  start();
  Process holder(hold(0));
  read_event(holder);
  write("q.yaml",
        "{ match: \"billing/**\", migrate: { from: third, to: new, plan: q, mode: dual, phase: 0 } "
        "}");
  for (const std::string verb : {"plan", "start", "start"}) {
    const auto refused = finish(with("q.yaml", {"migrate", verb, "q"}));
    EXPECT_EQ(refused.status.shell_status(), kRefused) << verb;
    EXPECT_NE((refused.out + refused.err).find("belongs to the unfinished plan 'p'"),
              std::string::npos)
        << verb << ": " << refused.out << refused.err;
  }
  const auto stranger = finish(with("q.yaml", {"hold", "billing/1", "--wait", "1s"}));
  EXPECT_NE(stranger.status.shell_status(), 0);
  EXPECT_NE(stranger.err.find("has no window of plan 'q'"), std::string::npos) << stranger.err;
  testkit::DirectClient target(url("new"));
  EXPECT_FALSE(target.note("window/q").found);
  EXPECT_FALSE(target.note("plan/q").found);
}

TEST_F(CliDual, TheWindowMayBeInAThirdStore) {
  for (int phase = 0; phase <= 2; ++phase) write_phase(phase, ", window: third");
  expect(0, {"plan", "p", "--window", "third"}, "window in 'third'");
  start();
  EXPECT_GT(once(0, "old"), 0);
  testkit::DirectClient client(url("third"));
  EXPECT_TRUE(client.note("window/p").found);
  expect(kUsage, {"start", "p", "--window", "new"}, "write `window: new`");
}

TEST_F(CliDual, CtrlCEndsAWaitAndLeavesNothing) {
  start();
  advance(0, 1);
  Process old(hold(0));
  read_event(old);
  Process advance(with(config(0), {"migrate", "advance", "p", "--wait", "forever"}));
  ASSERT_TRUE(advance.stderr_shows("pid " + std::to_string(old.pid()), patience()));
  advance.signal(SIGINT);
  const auto ended = advance.wait(patience());
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 128 + SIGINT);
  EXPECT_EQ(window(), std::pair(std::int64_t{0}, std::int64_t{1}));
}

TEST_F(CliDual, WhatIsWrongWithTheCommandIsSaid) {
  expect(kUsage, {"advance", "p", "--name", "billing/1"}, "a step is of the whole plan");
  expect(kUsage, {"start", "p", "--at", "0,2"}, "write the phases that are admitted, LO,HI");
  expect(kUsage, {"start", "p", "--at", "1"}, "0,0 0,1 1,1 1,2 or 2,2");
  expect(kUsage, {"start", "p", "--mode", "move"}, "has `mode: dual`");
  expect(kUsage, {"start", "p", "--registration", "1ms"}, "write 500ms to 10m");
  expect(kUsage, {"rollback", "p", "--target-gone"}, "of mode move");
  expect(kRefused, {"plan", "p", "elsewhere/1"}, "is not routed by plan 'p'");
  expect(kRefused, {"plan", "p", "billing/*"}, "give exact names only");
  expect(kConfig, {"plan", "other"}, "no entry of `locks:` has the plan 'other'");
  write(config(0), "{ match: \"billing/**\", migrate: { from: old, to: new, plan: p } }");
  expect(kUsage, {"advance", "p", "--all", "--legacy-gone"}, "write `mode: dual, phase: 0`");
  expect(kUsage, {"start", "p", "--mode", "dual"}, "write `mode: dual, phase: 0`");
}

TEST_F(CliDual, JsonIsAContract) {
  EXPECT_EQ(keys(migrate_json({"plan", "p", "billing/1"})),
            "plan mode from to max_lease_ms registration_ms window names patterns objections "
            "remarks");
  const auto step = migrate_json({"start", "p"});
  EXPECT_EQ(keys(step),
            "plan mode from to max_lease_ms registration_ms outcome changed text window waits_for "
            "strangers finished withdrawn");
  EXPECT_EQ(text(step, "mode"), "dual");
  Process old(hold(0));
  read_event(old);
  Process legacy(with("old.yaml", {"hold", "billing/2"}));
  read_event(legacy);
  const auto status = migrate_json({"status", "p"});
  EXPECT_EQ(keys(status),
            "plan mode from to max_lease_ms registration_ms finished next alarms window laggards "
            "strangers names patterns");
  const auto& window = status.at("window").as_object();
  EXPECT_EQ(keys(window), "store lo hi ver floor since_ms programs");
  ASSERT_EQ(window.at("programs").as_array().size(), 1U);
  EXPECT_EQ(keys(window.at("programs").as_array()[0].as_object()), "id phase host pid app");
}

}  // namespace
}  // namespace dlock::cli_test
