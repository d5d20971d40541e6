// SPDX-License-Identifier: Apache-2.0
//
// `dlock run` with bounds, and `dlock break --ask`.
#include <csignal>
#include <filesystem>
#include <memory>

#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

/// Says `ready` once it runs; `told` and its end when it has SIGTERM.
const std::vector<std::string> kObedient = {"sh", "-c",
                                            "trap 'echo told; exit 7' TERM; echo ready; "
                                            "while :; do sleep 0.05; done"};

std::vector<std::string> run_with(std::vector<std::string> options,
                                  const std::vector<std::string>& command) {
  options.insert(options.begin(), {"run", "x"});
  options.emplace_back("--");
  options.insert(options.end(), command.begin(), command.end());
  return options;
}

TEST(CliBounds, MaxHoldEndsTheCommandWhileTheLockIsOurs) {
  const LocalStore store;
  const auto ended = finish(dlock_on(store.url(), run_with({"--max-hold", "2s"}, kObedient)));
  EXPECT_EQ(ended.status.shell_status(), 76);
  EXPECT_EQ(ended.out, "ready\ntold\n");
  EXPECT_NE(ended.err.find("has had its time (--max-hold)"), std::string::npos) << ended.err;
  EXPECT_FALSE(is_held(store.url(), "x"));
}

TEST(CliBounds, ACommandThatHangsIsEndedAndOneThatComesOnIsNot) {
  const LocalStore store;
  const auto comes_on = finish(
      dlock_on(store.url(), run_with({"--progress-every", "4s"},
                                     {"sh", "-c",
                                      "for i in 1 2 3 4 5 6 7 8; do sleep 0.4; "
                                      "touch \"$DLOCK_PROGRESS\"; done; ls \"$DLOCK_PROGRESS\""})));
  EXPECT_EQ(comes_on.status.shell_status(), 0) << comes_on.err;
  EXPECT_NE(comes_on.out.find("dlock-progress-"), std::string::npos);
  const auto hangs = finish(dlock_on(store.url(), run_with({"--progress-every", "4s"}, kObedient)));
  EXPECT_EQ(hangs.status.shell_status(), 76);
  EXPECT_EQ(hangs.out, "ready\ntold\n");
  EXPECT_NE(hangs.err.find("is kept without progress"), std::string::npos) << hangs.err;
}

TEST(CliBounds, AProgressFileThatIsReplacedByRenameCountsEachTime) {
  const LocalStore store;
  const auto renames = finish(
      dlock_on(store.url(), run_with({"--progress-every", "4s"},
                                     {"sh", "-c",
                                      "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.4; "
                                      "touch \"$DLOCK_PROGRESS.new\"; "
                                      "mv \"$DLOCK_PROGRESS.new\" \"$DLOCK_PROGRESS\"; done"})));
  EXPECT_EQ(renames.status.shell_status(), 0) << renames.err;
}

TEST(CliBounds, ANewProgressFileRemovesThatOfAKilledProcessAndNoOther) {
  const LocalStore store;
  const testkit::TempDir temporary{"dlock-progress-test"};
  const auto start = [&](const std::string& name) {
    auto options =
        dlock_on(store.url(), {"run", name, "--progress-every", "60s", "--", "sh", "-c",
                               "echo \"$DLOCK_PROGRESS\"; read line; test -f \"$DLOCK_PROGRESS\""});
    options.env.emplace_back("TMPDIR", temporary.path().string());
    return std::make_unique<Process>(std::move(options));
  };
  const auto killed = start("killed");
  const auto left = killed->read_line(patience());
  ASSERT_TRUE(left);
  EXPECT_TRUE(std::filesystem::exists(*left));
  killed->kill_and_wait();
  const auto living = start("living");
  ASSERT_TRUE(living->read_line(patience()));
  EXPECT_FALSE(std::filesystem::exists(*left));
  const auto next = start("next");
  ASSERT_TRUE(next->read_line(patience()));
  for (const auto& process : {&living, &next}) {
    (*process)->close_stdin();
    EXPECT_EQ((*process)->wait(patience())->shell_status(), 0) << (*process)->collected_stderr();
  }
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

TEST(CliBounds, AnOuterProgressFileIsNotPassedOn) {
  const LocalStore store;
  auto options = dlock_on(store.url(), run_with({}, {"sh", "-c", "echo [$DLOCK_PROGRESS]"}));
  options.env.emplace_back("DLOCK_PROGRESS", "/an/outer/one");
  EXPECT_EQ(finish(std::move(options)).out, "[]\n");
}

TEST(CliBounds, AFullQueueIsAConflict) {
  const LocalStore store;
  Process holder(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  const auto full = dlock_on(store.url(), {"hold", "x", "--max-queue", "1"});
  Process waiter(dlock_on(store.url(), {"hold", "x"}));
  ASSERT_TRUE(testkit::eventually(patience(), [&] { return waiting(store.url(), "x") == 1; }));
  const auto refused = finish(full);
  EXPECT_EQ(refused.status.shell_status(), 75);
  EXPECT_NE(refused.err.find("1 wait for it already, and max_queue is 1"), std::string::npos)
      << refused.err;
}

TEST(CliAsk, TheCommandHasItsSignalAndTheLockIsGivenBack) {
  testkit::RedisServer server;
  server.start();
  Process holder(dlock_on(server.url(), run_with({"--on-revoke", "TERM"}, kObedient)));
  EXPECT_EQ(holder.read_line(patience()), "ready");
  const auto asked =
      finish(dlock_on(server.url(), {"break", "x", "--ask", "--within", "60s", "--json"}));
  EXPECT_EQ(asked.status.shell_status(), 0) << asked.err;
  EXPECT_NE(asked.out.find(R"({"event":"asked","name":"x","token":)"), std::string::npos)
      << asked.out;
  EXPECT_NE(asked.out.find(R"({"event":"gave_way","name":"x","token":)"), std::string::npos)
      << asked.out;
  EXPECT_EQ(holder.read_line(patience()), "told");
  const auto status = holder.wait(patience());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->shell_status(), 7);  // the lock was not lost
  EXPECT_NE(holder.collected_stderr().find("asks for the lock x within"), std::string::npos)
      << holder.collected_stderr();
}

TEST(CliAsk, WhoDoesNotGiveWayIsBrokenWhenTheTimeIsOver) {
  testkit::RedisServer server;
  server.start();
  Process holder(dlock_on(server.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  const auto only_asked = finish(dlock_on(server.url(), {"break", "x", "--ask"}));
  EXPECT_EQ(only_asked.status.shell_status(), 0);
  EXPECT_NE(only_asked.out.find("nobody listens"), std::string::npos) << only_asked.out;
  const auto broken = finish(dlock_on(server.url(), {"break", "x", "--ask", "--within", "300ms"}));
  EXPECT_EQ(broken.status.shell_status(), 0) << broken.err;
  EXPECT_NE(broken.out.find("nobody listens"), std::string::npos) << broken.out;
  EXPECT_NE(broken.out.find("x: taken from the holder with token"), std::string::npos)
      << broken.out;
  const auto lost = read_event(holder);
  EXPECT_EQ(text(lost, "event"), "lost");
  EXPECT_EQ(text(lost, "reason"), "broken");
}

// `dlock status` shows the token of the first reader as that of the lock.
TEST(CliAsk, AReaderThatKeepsTheLockIsBrokenByItsOwnToken) {
  testkit::RedisServer server;
  server.start();
  const auto url = server.url() + "?lease=6s";
  const auto token_of = [](const boost::json::object& shown) {
    return shown.at("token").to_number<std::uint64_t>();
  };
  Process first(dlock_on(url, {"hold", "x", "--shared"}));
  const auto first_token = token_of(read_event(first));
  Process second(dlock_on(url, {"hold", "x", "--shared"}));
  const auto second_token = token_of(read_event(second));
  const auto shown = token_of(status_of(url, "x"));
  ASSERT_TRUE(shown == first_token || shown == second_token);
  const bool is_second = shown == first_token;
  const auto token = std::to_string(is_second ? second_token : first_token);
  const auto broken =
      finish(dlock_on(url, {"break", "x", "--ask", "--token", token, "--within", "300ms"}));
  EXPECT_EQ(broken.status.shell_status(), 0) << broken.err;
  EXPECT_NE(broken.out.find("x: taken from the holder with token " + token), std::string::npos)
      << broken.out;
  EXPECT_EQ(text(read_event(is_second ? second : first), "event"), "lost");
  EXPECT_EQ(token_of(status_of(url, "x")), shown) << "the other reader still holds the lock";
}

TEST(CliAsk, RefusesWrongUsage) {
  const LocalStore store;
  const std::vector<std::vector<std::string>> table = {
      {"break", "x"},
      {"break", "x", "--token", "1", "--within", "3s"},
      {"run", "x", "--on-revoke", "KILL", "--", "true"},
      {"run", "x", "--max-hold", "0ms", "--", "true"},
      {"run", "x", "--progress-every", "0ms", "--", "true"},
  };
  for (const auto& arguments : table) {
    EXPECT_EQ(finish(dlock_on(store.url(), arguments)).status.shell_status(), 64)
        << arguments.back();
  }
  EXPECT_EQ(finish(dlock_on(store.url(), {"break", "x", "--ask"})).status.shell_status(), 75);
}

}  // namespace
}  // namespace dlock::cli_test
