// SPDX-License-Identifier: Apache-2.0
//
// `dlock run --leader`: the command runs while we lead.
#include <csignal>

#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

std::vector<std::string> leading(const std::string& name) {
  return {"run",  "--leader", "--retry",
          "50ms", name,       "--",
          "sh",   "-c",       "echo $DLOCK_TOKEN; exec sleep 60"};
}

std::string token_of(Process& process) { return process.read_line(patience()).value_or("none"); }

TEST(CliLeader, ItsCommandsEndIsItsOwn) {
  const LocalStore store;
  const auto ended =
      finish(dlock_on(store.url(), {"run", "--leader", "l", "--", "sh", "-c", "exit 7"}));
  EXPECT_EQ(ended.status.shell_status(), 7) << ended.err;
  EXPECT_FALSE(is_held(store.url(), "l"));
}

TEST(CliLeader, TheNextLeadsWhenOneIsToldToEnd) {
  const LocalStore store;
  Process first(dlock_on(store.url(), leading("l")));
  const auto token = std::stoull(token_of(first));
  Process second(dlock_on(store.url(), leading("l")));
  EXPECT_TRUE(testkit::eventually(patience(), [&] { return waiting(store.url(), "l") == 1; }));
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(patience())->shell_status(), 128 + SIGTERM);
  EXPECT_GT(std::stoull(token_of(second)), token);
  second.kill_and_wait();
}

TEST(CliLeader, ALostLeadEndsTheCommandAndItStandsAgain) {
  testkit::RedisServer server;
  server.start();
  Process leader(dlock_on(server.url(), leading("l")));
  const auto token = token_of(leader);
  EXPECT_EQ(finish(dlock_on(server.url(), {"break", "l", "--token", token})).status.shell_status(),
            0);
  const auto next = token_of(leader);
  EXPECT_GT(std::stoull(next), std::stoull(token));
  leader.signal(SIGTERM);
  EXPECT_EQ(leader.wait(patience())->shell_status(), 128 + SIGTERM);
  EXPECT_NE(leader.collected_stderr().find("standing again"), std::string::npos);
  EXPECT_FALSE(is_held(server.url(), "l"));
}

// The command ends at its second SIGTERM: the first is for the loss.
TEST(CliLeader, ASignalAfterALossEndsItWithoutAnotherCandidacy) {
  testkit::RedisServer server;
  server.start();
  const auto url = server.url() + "?lease=6s";
  const std::string script =
      "n=0; trap 'n=$((n + 1)); echo signal $n' TERM; echo $DLOCK_TOKEN; "
      "while [ $n -lt 2 ]; do sleep 0.05; done";
  Process leader(dlock_on(url, {"run", "--leader", "--retry", "50ms", "--kill-after", "10m", "l",
                                "--", "sh", "-c", script}));
  const auto token = token_of(leader);
  const auto marked = finish(dlock_on(url, {"break", "l", "--token", token, "--wait", "0"}));
  EXPECT_EQ(marked.status.shell_status(), 75) << marked.err;
  ASSERT_EQ(leader.read_line(patience()), "signal 1");
  leader.signal(SIGTERM);
  EXPECT_EQ(leader.read_line(patience()), "signal 2");
  const auto ended = leader.wait(patience());
  ASSERT_TRUE(ended) << leader.collected_stderr();
  EXPECT_EQ(ended->shell_status(), 76);
  EXPECT_EQ(leader.collected_stderr().find("standing again"), std::string::npos)
      << leader.collected_stderr();
}

// The command ends before the next renewal, which would report the loss first.
TEST(CliLeader, ALossThatTheReleaseReportsMakesItACandidateAgain) {
  testkit::RedisServer server;
  server.start();
  Process leader(dlock_on(server.url(), {"run", "--leader", "--retry", "50ms", "l", "--", "sh",
                                         "-c", "echo $DLOCK_TOKEN; read line"}));
  const auto token = token_of(leader);
  EXPECT_EQ(testkit::ask(server.port(), "FLUSHALL\r\n", "\n", patience()), "+OK\r\n");
  leader.close_stdin();
  const auto next = leader.read_line(patience());
  ASSERT_TRUE(next) << leader.collected_stderr();
  EXPECT_GT(std::stoull(*next), std::stoull(token));
  EXPECT_EQ(leader.wait(patience())->shell_status(), 1) << "the end of input ends the command";
}

// What is frozen, killed or told to end: somebody leads after it, and runs the command alone.
TEST(CliLeader, AfterAFrozenAndAKilledLeaderAnotherLeads) {
  testkit::RedisServer server;
  server.start();
  const auto url = server.url() + "?lease=1s";
  Process first(dlock_on(url, leading("l")));
  const auto token = std::stoull(token_of(first));
  Process second(dlock_on(url, leading("l")));
  ASSERT_TRUE(first.pause());
  const auto second_token = std::stoull(token_of(second));
  EXPECT_GT(second_token, token);
  ASSERT_TRUE(first.resume());
  EXPECT_TRUE(first.stderr_shows("standing again", patience()));
  second.kill_and_wait();
  EXPECT_GT(std::stoull(token_of(first)), second_token);
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(patience())->shell_status(), 128 + SIGTERM);
}

// G16: without a store the command does not run, and the candidate goes on standing.
TEST(CliLeader, G16_WithoutAStoreItStandsOn) {
  auto options = dlock({"--store", "redis://127.0.0.1:1/0?connect_timeout=100ms", "run", "--leader",
                        "--retry", "10ms", "l", "--", "echo", "ran"});
  Process leader(std::move(options));
  EXPECT_TRUE(testkit::eventually(patience(), [&] {
    const auto said = leader.collected_stderr();
    const auto first = said.find("standing again");
    return first != std::string::npos &&
           said.find("standing again", first + 1) != std::string::npos;
  }));
  leader.signal(SIGTERM);
  EXPECT_EQ(leader.wait(patience())->shell_status(), 128 + SIGTERM);
  EXPECT_EQ(leader.read_line(within(0s)), std::nullopt);
}

TEST(CliLeader, WhatDoesNotGoWithItIsRefusedWithWhatToWrite) {
  const LocalStore store;
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"--at-most-for", "1s"}, "leave --at-most-for out"},
      {{"--shared"}, "leave --shared out"},
      {{"--nested"}, "leave --nested out"},
      {{"--on-lost", "warn"}, "leave --on-lost out"},
      {{"--lease", "3s", "--retry", "2s"}, "write less than"},
  };
  for (const auto& [options, remedy] : table) {
    std::vector<std::string> words = {"run", "--leader", "l"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    const auto refused = finish(dlock_on(store.url(), words));
    EXPECT_EQ(refused.status.shell_status(), 64);
    EXPECT_NE(refused.err.find(remedy), std::string::npos) << refused.err;
  }
  const auto alone = finish(dlock_on(store.url(), {"run", "--retry", "1s", "l", "--", "true"}));
  EXPECT_NE(alone.err.find("add --leader"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace dlock::cli_test
