// SPDX-License-Identifier: Apache-2.0
//
// `dlock hold`: the protocol that scripts depend on. What is pinned here is a contract.
#include <csignal>

#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

TEST(CliHold, PrintsOneJsonObjectALine) {
  const LocalStore store;
  Process hold(dlock_on(store.url(), {"hold", "orders/42"}));
  const auto held = read_event(hold);
  EXPECT_EQ(keys(held), "event name token store remaining_ms sequencer");
  EXPECT_EQ(text(held, "event"), "held");
  EXPECT_EQ(text(held, "name"), "orders/42");
  EXPECT_EQ(text(held, "store"), "default");
  EXPECT_TRUE(held.at("token").is_number());
  EXPECT_TRUE(held.at("remaining_ms").is_null());  // the local store has no lease
  EXPECT_EQ(text(held, "sequencer"),
            "dlock1:exclusive:" + std::to_string(held.at("token").to_number<std::uint64_t>()) +
                ":default:orders/42");
  EXPECT_TRUE(is_held(store.url(), "orders/42"));

  hold.close_stdin();
  const auto released = read_event(hold);
  EXPECT_EQ(keys(released), "event name token store sequencer");
  EXPECT_EQ(text(released, "event"), "released");
  EXPECT_EQ(released.at("token"), held.at("token"));
  EXPECT_EQ(released.at("sequencer"), held.at("sequencer"));
  EXPECT_EQ(hold.wait(patience())->shell_status(), 0);
  EXPECT_EQ(hold.unread_stdout() + hold.collected_stderr(), "");
  EXPECT_FALSE(is_held(store.url(), "orders/42"));
}

TEST(CliHold, IgnoresWhatComesOnStandardInput) {
  const LocalStore store;
  Process hold(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(hold), "event"), "held");
  hold.write(std::string(100'000, 'x'));
  EXPECT_TRUE(is_held(store.url(), "x"));
  hold.close_stdin();
  EXPECT_EQ(text(read_event(hold), "event"), "released");
}

TEST(CliHold, EndsInOrderBySignals) {
  const LocalStore store;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Process hold(dlock_on(store.url(), {"hold", "x"}));
    EXPECT_EQ(text(read_event(hold), "event"), "held");
    hold.signal(signal);
    EXPECT_EQ(text(read_event(hold), "event"), "released");
    EXPECT_EQ(hold.wait(patience())->shell_status(), 0);
  }
}

TEST(CliHold, EndsAfterAWhile) {
  const LocalStore store;
  for (const auto input :
       {testkit::ProcessOptions::Input::null, testkit::ProcessOptions::Input::closed,
        testkit::ProcessOptions::Input::pipe}) {
    auto options = dlock_on(store.url(), {"hold", "x", "--for", "200ms"});
    options.stdin_from = input;
    const auto start = testkit::Clock::now();
    Process hold(options);
    EXPECT_EQ(text(read_event(hold), "event"), "held");
    EXPECT_EQ(text(read_event(hold), "event"), "released");
    EXPECT_GE(testkit::Clock::now() - start, 200ms);
    EXPECT_EQ(hold.wait(patience())->shell_status(), 0);
  }
}

// /dev/null and a closed standard input do not end it: that is how a service manager starts it.
TEST(CliHold, HoldsOnWithoutStandardInput) {
  const LocalStore store;
  for (const auto input :
       {testkit::ProcessOptions::Input::null, testkit::ProcessOptions::Input::closed}) {
    auto options = dlock_on(store.url(), {"hold", "x"});
    options.stdin_from = input;
    Process hold(options);
    EXPECT_EQ(text(read_event(hold), "event"), "held");
    EXPECT_FALSE(hold.wait(within(200ms)));
    EXPECT_TRUE(is_held(store.url(), "x"));
    hold.signal(SIGTERM);
    EXPECT_EQ(text(read_event(hold), "event"), "released");
  }
}

TEST(CliHold, GivesUpInTime) {
  const LocalStore store;
  Process first(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(first), "event"), "held");
  const auto second = finish(dlock_on(store.url(), {"hold", "x", "--wait", "0"}));
  EXPECT_EQ(second.status.shell_status(), 75);
  EXPECT_EQ(second.out, "");
  EXPECT_EQ(finish(dlock_on(store.url(), {"hold", "x", "--wait", "0", "-E", "3"})).status.code, 3);
}

TEST(CliHold, ReleasesAndExits74WhenItsOutputHasNoReader) {
  const LocalStore store;
  for (const auto input :
       {testkit::ProcessOptions::Input::null, testkit::ProcessOptions::Input::pipe}) {
    auto options = dlock_on(store.url(), {"hold", "x"});
    options.stdin_from = input;
    Process hold(options);
    EXPECT_EQ(text(read_event(hold), "event"), "held");
    hold.close_stdout();
    const auto ended = hold.wait(patience());
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->shell_status(), 74);
    EXPECT_EQ(hold.collected_stderr(), "dlock: standard output cannot be written: Broken pipe\n");
    EXPECT_FALSE(is_held(store.url(), "x"));
  }
}

TEST(CliHold, AFileAsOutputDoesNotEndIt) {
  const LocalStore store;
  const auto file = store.folder() / "events";
  auto options = dlock_on(store.url(), {"hold", "x"});
  options.stdin_from = testkit::ProcessOptions::Input::null;
  options.log_file = file;
  Process hold(options);
  ASSERT_TRUE(testkit::eventually(patience(), [&] { return is_held(store.url(), "x"); }));
  EXPECT_FALSE(hold.wait(within(200ms)));
  hold.signal(SIGTERM);
  const auto ended = hold.wait(patience());
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 0);
  EXPECT_NE(testkit::read_file(file).find("\"released\""), std::string::npos);
}

TEST(CliHold, AFullPipeDelaysNeitherForNorASignal) {
  const LocalStore store;
  const FullPipe full;
  for (const bool by_signal : {false, true}) {
    auto options = dlock_on(store.url(), {"hold", "x", "--for", by_signal ? "1h" : "300ms"});
    options.stdin_from = testkit::ProcessOptions::Input::null;
    options.log_file = full.path();
    Process hold(options);
    if (by_signal) {
      ASSERT_TRUE(testkit::eventually(patience(), [&] { return is_held(store.url(), "x"); }));
      hold.signal(SIGTERM);
    }
    const auto ended = hold.wait(within(5s));
    ASSERT_TRUE(ended) << by_signal;
    EXPECT_EQ(ended->shell_status(), 74);
    EXPECT_FALSE(is_held(store.url(), "x"));
  }
}

TEST(CliHold, AFullPipeDoesNotDelayALoss) {
  testkit::RedisServer server;
  server.start();
  const FullPipe full;
  const auto url = server.url() + "?lease=3s";
  auto options = dlock_on(url, {"-q", "hold", "x"});
  options.stdin_from = testkit::ProcessOptions::Input::null;
  options.log_file = full.path();
  Process hold(options);
  ASSERT_TRUE(testkit::eventually(patience(), [&] { return is_held(url, "x"); }));
  const auto token = std::to_string(status_of(url, "x").at("token").to_number<std::uint64_t>());
  EXPECT_EQ(finish(dlock_on(url, {"break", "x", "--token", token})).status.code, 0);
  const auto ended = hold.wait(within(5s));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 76);
}

TEST(CliHold, AFullPipeDoesNotDelayTheEndOfAnExport) {
  testkit::RedisServer server;
  server.start();
  const FullPipe full;
  auto options = dlock_on(server.url(), {"-q", "hold", "x", "--export", "--within", "300ms"});
  options.log_file = full.path();
  Process hold(options);
  const auto ended = hold.wait(within(10s));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 75);
  EXPECT_FALSE(is_held(server.url(), "x"));
}

TEST(CliHold, TheReaderOfAnExportMayLeaveAfterItsLine) {
  testkit::RedisServer server;
  server.start();
  auto options = dlock_on(server.url(), {"-q", "hold", "x", "--export"});
  options.stdin_from = testkit::ProcessOptions::Input::null;
  Process hold(options);
  const auto grant = hold.read_line(patience());
  ASSERT_TRUE(grant) << hold.collected_stderr();
  hold.close_stdout();
  EXPECT_FALSE(hold.wait(within(300ms)));
  EXPECT_EQ(finish(dlock_on(server.url(), {"-q", "run", "x", "--adopt", "-", "--", "true"}),
                   *grant + "\n")
                .status.code,
            0);
  const auto ended = hold.wait(patience());
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 0);
}

// The local store has no lease: a stopped holder keeps the lock, and has it when it goes on.
TEST(CliHold, AStopOnTheLocalStoreLosesNothing) {
  const LocalStore store;
  Process hold(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(hold), "event"), "held");
  ASSERT_TRUE(hold.pause());
  EXPECT_EQ(
      finish(dlock_on(store.url(), {"run", "x", "--wait", "200ms", "--", "true"})).status.code, 75);
  hold.resume();
  hold.close_stdin();
  EXPECT_EQ(text(read_event(hold), "event"), "released");
}

TEST(CliHold, HoldsTheLockAfterItWasStoppedAndContinued) {
  const LocalStore store;
  Process hold(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(hold), "event"), "held");
  ASSERT_TRUE(hold.pause());
  ASSERT_TRUE(hold.resume());
  const auto waiter = finish(dlock_on(store.url(), {"run", "x", "--wait", "1s", "--", "true"}));
  EXPECT_EQ(waiter.status.code, 75) << "SIGCONT has ended it";
  hold.close_stdin();
  EXPECT_EQ(text(read_event(hold), "event"), "released");
}

// Nothing but the next renewal, which is ten seconds away, would report it before.
TEST(CliHold, ALossThatTheReleaseReportsIsPrintedAsLost) {
  testkit::RedisServer server;
  server.start();
  Process hold(dlock_on(server.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(hold), "event"), "held");
  EXPECT_EQ(testkit::ask(server.port(), "FLUSHALL\r\n", "\n", patience()), "+OK\r\n");
  hold.close_stdin();
  EXPECT_EQ(text(read_event(hold), "event"), "lost");
  const auto ended = hold.wait(patience());
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 76);
}

}  // namespace
}  // namespace dlock::cli_test
