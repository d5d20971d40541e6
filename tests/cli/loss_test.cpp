// SPDX-License-Identifier: Apache-2.0
//
// Losing a lock on real stores that have a lease, as scripts and commands see it.
#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

/// A store that frees a silent holder's lock after a while that `--lease` sets.
struct LeasedStore {
  const char* name;
  std::unique_ptr<testkit::Server> (*make)();
  const char* suffix;  ///< of its URL; the lease follows
};

std::unique_ptr<testkit::Server> make_zookeeper() {
  return std::make_unique<testkit::ZooKeeperServer>(testkit::ZooKeeperOptions{.tick = 300ms});
}

std::unique_ptr<testkit::Server> make_redis() { return std::make_unique<testkit::RedisServer>(); }

class CliLoss : public testing::TestWithParam<LeasedStore> {
 protected:
  void SetUp() override { server_->start(); }
  std::string url(const std::string& lease = "2s") const {
    return server_->url() + GetParam().suffix + lease;
  }

  /// A rival that got the lock.
  std::unique_ptr<Process> rival(const std::string& name) {
    auto process = std::make_unique<Process>(dlock_on(url(), {"hold", name}));
    EXPECT_EQ(text(read_event(*process), "event"), "held");
    return process;
  }

  const std::unique_ptr<testkit::Server> server_ = GetParam().make();
};

/// Those that this build has.
std::vector<LeasedStore> leased_stores() {
  std::vector<LeasedStore> stores{
      {"redis", make_redis, "?lease="},
      {"zookeeper", make_zookeeper, "app?session_timeout="},
  };
  const auto built_in = OpenOptions::built_in().backends;
  std::erase_if(stores, [&](const LeasedStore& store) {
    return std::none_of(built_in.begin(), built_in.end(), [&](const BackendDescriptor* backend) {
      return backend->name == store.name;
    });
  });
  return stores;
}

INSTANTIATE_TEST_SUITE_P(Stores, CliLoss, testing::ValuesIn(leased_stores()),
                         [](const auto& store) { return std::string(store.param.name); });

TEST_P(CliLoss, AStoppedHolderSaysLostFirstAndLeavesTheNextOwnerAlone) {
  Process hold(dlock_on(url(), {"hold", "x"}));
  const auto held = read_event(hold);
  EXPECT_EQ(text(held, "event"), "held");
  EXPECT_TRUE(held.at("remaining_ms").is_number());
  ASSERT_TRUE(hold.pause());
  const auto next = rival("x");
  hold.close_stdin();
  hold.resume();

  const auto lost = read_event(hold);
  EXPECT_EQ(text(lost, "event"), "lost");
  EXPECT_EQ(text(lost, "name"), "x");
  EXPECT_NE(text(lost, "reason"), "(none)");
  EXPECT_EQ(lost.at("token"), held.at("token"));
  EXPECT_EQ(hold.wait(patience())->shell_status(), 76);
  EXPECT_EQ(hold.unread_stdout(), "");

  EXPECT_TRUE(is_held(url(), "x"));
  next->close_stdin();
  EXPECT_EQ(text(read_event(*next), "event"), "released");
}

TEST_P(CliLoss, AStoppedRunEndsItsCommand) {
  Process process(dlock_on(url(), {"run", "x", "--", "sh", "-c", "sleep 1000 & echo $$ $!; wait"}));
  const auto line = process.read_line(patience());
  ASSERT_TRUE(line);
  const pid_t shell = std::stoi(*line);
  const pid_t inner = std::stoi(line->substr(line->find(' ')));
  ASSERT_TRUE(process.pause());
  const auto next = rival("x");
  process.resume();
  EXPECT_EQ(process.wait(patience())->shell_status(), 76);
  EXPECT_FALSE(testkit::process_start_time(shell));
  EXPECT_FALSE(testkit::process_start_time(inner));
  EXPECT_NE(process.collected_stderr().find("the lock x is lost"), std::string::npos)
      << process.collected_stderr();
  EXPECT_TRUE(is_held(url(), "x"));
}

// Twice as long as the lease: somebody renews it.
TEST_P(CliLoss, ALockWhoseCommandWasToldToStopIsRenewedUntilItHasEnded) {
  const std::string script =
      "trap 'sleep 4; echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
  Process process(dlock_on(url(), {"run", "x", "--", "sh", "-c", script}));
  ASSERT_EQ(process.read_line(patience()), "ready");
  process.signal(SIGTERM);
  const auto early = finish(dlock_on(url(), {"run", "--wait", "3s", "x", "--", "true"}));
  EXPECT_EQ(early.status.shell_status(), 75) << early.err;
  EXPECT_EQ(process.read_line(patience()), "stopped");
  EXPECT_EQ(process.wait(patience())->shell_status(), 0);
  EXPECT_EQ(finish(dlock_on(url(), {"run", "x", "--", "true"})).status.shell_status(), 0);
}

TEST_P(CliLoss, ARunThatCannotRenewEndsItsCommandBeforeTheLockIsOver) {
  const std::string script =
      "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
  Process process(dlock_on(url(), {"run", "x", "--", "sh", "-c", script}));
  ASSERT_EQ(process.read_line(patience()), "ready");
  server_->pause();
  const auto paused = testkit::Clock::now();
  EXPECT_EQ(process.read_line(patience()), "told");
  EXPECT_LT(testkit::Clock::now() - paused, 2s);
  const auto ended = process.wait(patience());
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 76);
  server_->resume();
}

TEST_P(CliLoss, ACommandThatDoesNotListenIsKilled) {
  const std::string script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
  Process process(dlock_on(url(), {"run", "x", "--kill-after", "100ms", "--", "sh", "-c", script}));
  ASSERT_EQ(process.read_line(patience()), "ready");
  server_->pause();
  const auto paused = testkit::Clock::now();
  EXPECT_TRUE(process.stderr_shows("was killed", patience())) << process.collected_stderr();
  EXPECT_LT(testkit::Clock::now() - paused, 2s);
  EXPECT_EQ(process.wait(patience())->shell_status(), 76);
  server_->resume();
}

TEST_P(CliLoss, OnLostWarnLetsTheCommandGoOn) {
  Process process(dlock_on(
      url(), {"run", "x", "--on-lost", "warn", "--", "sh", "-c", "echo ready; read line; exit 0"}));
  ASSERT_EQ(process.read_line(patience()), "ready");
  ASSERT_TRUE(process.pause());
  const auto next = rival("x");
  process.resume();
  EXPECT_TRUE(process.stderr_shows("goes on without it", patience()));
  EXPECT_TRUE(process.running());
  process.write("go\n");
  EXPECT_EQ(process.wait(patience())->shell_status(), 76);
}

// As after sudo, or in a login shell.
TEST_P(CliLoss, ANestedRunWithoutItsEnvironmentDoesNotWaitForItsAncestor) {
  const auto inner =
      finish(dlock_on(url("6s"), {"run", "x", "--", "env", "-i", dlock_binary(), "--store",
                                  url("6s"), "run", "x", "--wait", "20s", "--", "true"}));
  EXPECT_EQ(inner.status.shell_status(), 64) << inner.err;
  EXPECT_NE(inner.err.find("a process around this command (pid "), std::string::npos) << inner.err;
}

TEST_P(CliLoss, AShortWaitForAnAncestorsLockIsAUsageError) {
  for (const char* wait : {"0", "100ms"}) {
    const auto inner = finish(
        dlock_on(url("6s"), {"run", "x", "--", "env", "-i", dlock_binary(), "--store", url("6s"),
                             "run", "x", "--wait", wait, "-E", "0", "--", "true"}));
    EXPECT_EQ(inner.status.shell_status(), 64) << inner.err;
  }
}

// The environment says that the outer run holds the lock; the store says that it does not.
TEST_P(CliLoss, ANestedRunDoesNotRunUnderALostLock) {
  const std::string inner =
      "\"" + dlock_binary() + "\" --store \"" + url() + "\" run x --nested --wait 0 -- ";
  Process outer(dlock_on(
      url(), {"run", "x", "--on-lost", "warn", "--", "sh", "-c",
              inner + "echo held; echo ready; read go; " + inner +
                  "echo beside; echo status $?; read go; " + inner + "echo alone; exit 0"}));
  ASSERT_EQ(outer.read_line(patience()), "held") << outer.collected_stderr();
  ASSERT_EQ(outer.read_line(patience()), "ready");
  ASSERT_TRUE(outer.pause());
  const auto next = rival("x");
  outer.resume();
  ASSERT_TRUE(outer.stderr_shows("goes on without it", patience()));
  outer.write("go\n");
  EXPECT_EQ(outer.read_line(patience()), "status 75") << outer.collected_stderr();
  next->close_stdin();
  EXPECT_EQ(text(read_event(*next), "event"), "released");
  outer.write("go\n");
  EXPECT_EQ(outer.read_line(patience()), "alone") << "it acquires the free lock itself";
  EXPECT_EQ(outer.wait(patience())->shell_status(), 76);
}

TEST_P(CliLoss, AShortOutageIsSuspectAndThenHeldAgain) {
  Process hold(dlock_on(url("6s"), {"hold", "x"}));
  EXPECT_EQ(text(read_event(hold), "event"), "held");
  server_->pause();
  EXPECT_EQ(text(read_event(hold), "event"), "suspect");
  server_->resume();
  EXPECT_EQ(text(read_event(hold), "event"), "held");
  hold.close_stdin();
  EXPECT_EQ(text(read_event(hold), "event"), "released");
  EXPECT_EQ(hold.wait(patience())->shell_status(), 0);
}

TEST_P(CliLoss, ABrokenLockIsLostToItsHolder) {
  Process hold(dlock_on(url(), {"hold", "x"}));
  const auto held = read_event(hold);
  const auto token = held.at("token").to_number<std::uint64_t>();
  EXPECT_EQ(
      finish(dlock_on(url(), {"break", "x", "--token", std::to_string(token + 1)})).status.code,
      75);
  const auto broken =
      finish(dlock_on(url(), {"break", "x", "--token", std::to_string(token), "--json"}));
  EXPECT_EQ(broken.status.shell_status(), 0) << broken.err;
  EXPECT_EQ(broken.out,
            "{\"event\":\"broken\",\"name\":\"x\",\"token\":" + std::to_string(token) + "}\n");
  EXPECT_EQ(text(read_event(hold), "event"), "lost");
  EXPECT_EQ(hold.wait(patience())->shell_status(), 76);
}

TEST_P(CliLoss, AKilledRunEndsItsCommandAndFreesTheLockInALease) {
  Process process(dlock_on(url(), {"run", "x", "--", "sh", "-c", "echo $$; exec sleep 1000"}));
  const pid_t command = std::stoi(process.read_line(patience()).value_or("0"));
  ASSERT_TRUE(testkit::process_start_time(command));
  process.kill_and_wait();
  EXPECT_TRUE(
      testkit::eventually(patience(), [&] { return !testkit::process_start_time(command); }));
  const auto next = rival("x");
}

TEST_P(CliLoss, ACtrlCWhileWaitingLeavesNothingBehind) {
  const auto holder = rival("x");
  Process waiter(dlock_on(url(), {"run", "x", "--", "true"}));
  ASSERT_TRUE(testkit::eventually(patience(), [&] { return waiting(url(), "x") == 1; }));
  waiter.signal(SIGINT);
  EXPECT_EQ(waiter.wait(patience())->shell_status(), 130);
  EXPECT_EQ(waiting(url(), "x"), 0U);
}

TEST_P(CliLoss, LeaseSetsTheStoresPatience) {
  const auto result = finish(dlock_on(url(), {"hold", "x", "--lease", "3s", "--for", "0s"}));
  ASSERT_EQ(result.status.shell_status(), 0) << result.err;
  const auto first = boost::json::parse(result.out.substr(0, result.out.find('\n'))).as_object();
  const auto remaining = first.at("remaining_ms").to_number<std::int64_t>();
  EXPECT_GT(remaining, 1'000);
  EXPECT_LE(remaining, 3'000);
}

TEST(CliZooKeeper, ASessionThatTheServerClipsIsRefusedWithFileAndLine) {
  testkit::ZooKeeperServer server({.tick = 300ms});
  server.start();
  const testkit::TempDir folder("dlock-cli-test");
  const auto file = (folder / "dlock.yaml").string();
  // Two to twenty ticks of 300 ms: 600 ms to 6 s.
  testkit::write_file(
      file, "stores:\n  zk:\n    url: \"" + server.url() + "app\"\n    session_timeout: 30s\n");
  const auto result = finish(dlock({"--config", file, "run", "x", "--", "true"}));
  EXPECT_EQ(result.status.shell_status(), 78) << result.err;
  EXPECT_NE(result.err.find(file + ":4"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("6000"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace dlock::cli_test
