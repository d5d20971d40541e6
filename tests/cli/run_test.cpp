// SPDX-License-Identifier: Apache-2.0
//
// `dlock run` on the local store: statuses, streams, environment, signals.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "cli/process/process_tree.hpp"
#include "testkit/ports.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

int status_of_run(const std::string& url, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  return finish(dlock_on(url, std::move(arguments))).status.shell_status();
}

TEST(CliRun, PassesTheCommandsStatusThrough) {
  const LocalStore store;
  EXPECT_EQ(status_of_run(store.url(), {"x", "--", "true"}), 0);
  EXPECT_EQ(status_of_run(store.url(), {"x", "--", "sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(status_of_run(store.url(), {"x", "--", "sh", "-c", "exit 255"}), 255);
  EXPECT_EQ(status_of_run(store.url(), {"x", "--", "sh", "-c", "kill -9 $$"}), 128 + 9);
  EXPECT_EQ(status_of_run(store.url(), {"x", "--", "sh", "-c", "kill -15 $$"}), 128 + 15);
  EXPECT_FALSE(is_held(store.url(), "x"));
}

TEST(CliRun, TakesTheShortOptionsOfFlock) {
  const LocalStore store;
  EXPECT_EQ(status_of_run(store.url(), {"x", "-n", "-c", "test \"$DLOCK_NAME\" = x && exit 7"}), 7);
  EXPECT_EQ(status_of_run(store.url(), {"x", "-x", "-w", "10", "--", "true"}), 0);
  Process reader(dlock_on(store.url(), {"hold", "x", "--shared"}));
  EXPECT_EQ(text(read_event(reader), "event"), "held");
  EXPECT_EQ(status_of_run(store.url(), {"x", "-s", "-n", "-c", "exit 7"}), 7);
  EXPECT_EQ(status_of_run(store.url(), {"x", "-n", "-E", "9", "-c", "exit 7"}), 9);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(status_of_run(store.url(), {"x", "-w", "0.4", "-c", "exit 7"}), 75);
  const auto waited = std::chrono::steady_clock::now() - before;
  EXPECT_GE(waited, 400ms) << "a bare number means seconds";
  EXPECT_LT(waited, 20s);
}

TEST(CliRun, SaysWhenTheCommandCannotBeRun) {
  const LocalStore store;
  const auto missing = finish(dlock_on(store.url(), {"run", "x", "--", "/no/such/command"}));
  EXPECT_EQ(missing.status.shell_status(), 127);
  EXPECT_EQ(missing.err, "dlock: /no/such/command: No such file or directory\n");
  EXPECT_EQ(status_of_run(store.url(), {"x", "--", "no-such-command-in-path"}), 127);
  const auto plain = store.folder() / "plain";
  testkit::write_file(plain, "data");
  EXPECT_EQ(status_of_run(store.url(), {"x", "--", plain.string()}), 126);
  EXPECT_EQ(status_of_run(store.url(), {"x", "--", "/"}), 126);
  const auto script = store.folder() / "script";
  testkit::write_file(script, "#! /no/such/interpreter -u\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto lame = finish(dlock_on(store.url(), {"run", "x", "--", script.string()}));
  EXPECT_EQ(lame.status.shell_status(), 126);
  EXPECT_NE(lame.err.find("the interpreter of its first line, /no/such/interpreter, is not there"),
            std::string::npos)
      << lame.err;
  EXPECT_FALSE(is_held(store.url(), "x"));
}

TEST(CliRun, RefusesWrongUsage) {
  const LocalStore store;
  const std::vector<std::vector<std::string>> table = {
      {"run", "x"},
      {"run", "x", "--"},
      {"run", "--", "true"},
      {"run", "x", "true"},
      {"run", "x", "--no-such-option", "--", "true"},
      {"run", "x", "--wait", "5", "--", "true"},
      {"run", "x", "--lease", "soon", "--", "true"},
      {"run", "x", "--lease", "0", "--", "true"},
      {"run", "x", "--on-lost", "cry", "--", "true"},
      {"run", "x", "-E", "300", "--", "true"},
      {"run", "x", "--shared=soon", "--", "true"},
      {"run", "../x", "--", "true"},
      {"run", "a\nb", "--", "true"},
      {"run", std::string(513, 'x'), "--", "true"},
      {"status"},
      {"status", "x", "--", "true"},
      {"break", "x"},
      {"break", "x", "--token", "many"},
      {"nonsense"},
      {},
      {"--config", "/tmp/x", "status", "x"},
  };
  for (const auto& arguments : table) {
    const auto result = finish(dlock_on(store.url(), arguments));
    EXPECT_EQ(result.status.shell_status(), 64) << testing::PrintToString(arguments) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.substr(0, 7), "dlock: ") << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(CliRun, HelpAndVersionGoToStandardOutput) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--help"}, {"--version"}, {"run", "--help"}, {"hold", "--help"}}) {
    const auto result = finish(dlock(arguments));
    EXPECT_EQ(result.status.shell_status(), 0);
    EXPECT_EQ(result.err, "");
    EXPECT_NE(result.out.find("dlock"), std::string::npos) << result.out;
  }
}

TEST(CliRun, GivesUpInTime) {
  const LocalStore store;
  Process holder(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");

  EXPECT_EQ(status_of_run(store.url(), {"x", "--wait", "0", "--", "true"}), 75);
  EXPECT_EQ(status_of_run(store.url(), {"x", "--wait", "0", "-E", "33", "--", "true"}), 33);
  EXPECT_EQ(
      status_of_run(store.url(), {"x", "--wait", "0", "--conflict-exit-code", "0", "--", "true"}),
      0);
  const auto start = testkit::Clock::now();
  const auto late = finish(dlock_on(store.url(), {"run", "x", "--wait", "300ms", "--", "true"}));
  EXPECT_GE(testkit::Clock::now() - start, 300ms);
  EXPECT_EQ(late.status.shell_status(), 75);
  EXPECT_NE(late.err.find("dlock: x: not obtained in time"), std::string::npos) << late.err;
  EXPECT_EQ(waiting(store.url(), "x"), 0U);

  EXPECT_EQ(status_of_run(store.url(), {"y", "--wait", "0", "--", "true"}), 0);
}

TEST(CliRun, WaitsForTheLock) {
  const LocalStore store;
  Process holder(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  Process waiter(dlock_on(store.url(), {"run", "x", "--", "echo", "mine"}));
  EXPECT_TRUE(testkit::eventually(patience(), [&] { return waiting(store.url(), "x") == 1; }));
  holder.close_stdin();
  EXPECT_EQ(waiter.read_line(patience()), "mine");
  EXPECT_EQ(waiter.wait(patience())->shell_status(), 0);
}

TEST(CliRun, SaysUnavailableWithinTheConnectTimeout) {
  const testkit::Port nobody;
  const auto start = testkit::Clock::now();
  const auto result = finish(dlock_on(
      "zookeeper://127.0.0.1:" + std::to_string(nobody.number()) + "/app?connect_timeout=1s",
      {"run", "x", "--", "true"}));
  EXPECT_EQ(result.status.shell_status(), 69) << result.err;
  EXPECT_EQ(result.err.substr(0, 10), "dlock: x: ") << result.err;
  EXPECT_LT(testkit::Clock::now() - start, 10s);
}

TEST(CliRun, PassesStandardStreamsAndNothingElse) {
  const LocalStore store;
  const auto echo = finish(dlock_on(store.url(), {"run", "x", "--", "cat"}), "to be copied\n");
  EXPECT_EQ(echo.out, "to be copied\n");
  EXPECT_EQ(echo.err, "");
  const auto quiet = finish(dlock_on(store.url(), {"run", "x", "--", "true"}));
  EXPECT_EQ(quiet.out + quiet.err, "");

  // Three streams, the lock's own descriptor (as under flock), and the folder that ls reads.
  const auto open = finish(dlock_on(store.url(), {"run", "x", "--", "ls", "/proc/self/fd"}));
  EXPECT_EQ(std::count(open.out.begin(), open.out.end(), '\n'), 5) << open.out;
}

TEST(CliRun, PassesNoVariableOfAnOuterRunToTheCommand) {
  const LocalStore store;
  auto options = dlock_on(
      store.url(), {"run", "x", "--of", "3", "--", "sh", "-c",
                    "echo ${DLOCK_TOKEN-none} ${DLOCK_SEQUENCER-none} ${DLOCK_PROGRESS-none}"});
  options.env = {
      {"DLOCK_TOKEN", "outer"}, {"DLOCK_SEQUENCER", "outer"}, {"DLOCK_PROGRESS", "outer"}};
  EXPECT_EQ(finish(options).out, "none none none\n");
}

TEST(CliRun, TellsTheCommandWhatItHolds) {
  const LocalStore store;
  auto options =
      dlock_on(store.url(), {"run", "orders/42", "--", "sh", "-c",
                             "echo \"$DLOCK_NAME $DLOCK_HELD_STORE\"; echo $DLOCK_TOKEN; echo "
                             "$DLOCK_SEQUENCER"});
  options.env = {{"DLOCK_TOKEN", "an outer one"}, {"DLOCK_SEQUENCER", "an outer one"}};
  const auto first = finish(options);
  const auto second = finish(options);
  const std::string head = "orders/42 default\n";
  ASSERT_EQ(first.out.substr(0, head.size()), head);
  EXPECT_GT(std::stoull(second.out.substr(head.size())),
            std::stoull(first.out.substr(head.size())));
  const auto token = std::to_string(std::stoull(second.out.substr(head.size())));
  EXPECT_EQ(second.out, head + token + "\ndlock1:exclusive:" + token + ":default:orders/42\n");
}

TEST(CliRun, TakesTheStoreFromTheEnvironmentToo) {
  const LocalStore store;
  auto options = dlock({"run", "x", "--", "true"});
  EXPECT_EQ(finish(options).status.shell_status(), 78);
  options.env = {{"DLOCK_STORE", store.url()}};
  options.unset_env = {"DLOCK_CONFIG"};
  EXPECT_EQ(finish(options).status.shell_status(), 0);
  testkit::write_file(store.folder() / "dlock.yaml", "stores: { main: \"" + store.url() + "\" }\n");
  options.env = {{"DLOCK_CONFIG", (store.folder() / "dlock.yaml").string()}};
  options.unset_env = {"DLOCK_STORE"};
  options.argv = {dlock_binary(), "run", "x", "--", "sh", "-c", "echo $DLOCK_HELD_STORE"};
  EXPECT_EQ(finish(options).out, "main\n");
}

class CliRunSignal : public testing::TestWithParam<int> {};

TEST_P(CliRunSignal, ReachesTheCommandAndTheLockIsFreed) {
  const LocalStore store;
  const std::string script =
      "trap 'echo caught; exit 9' HUP INT QUIT TERM USR1 USR2; echo ready; "
      "while :; do sleep 0.05; done";
  Process process(dlock_on(store.url(), {"run", "x", "--", "sh", "-c", script}));
  ASSERT_EQ(process.read_line(patience()), "ready");
  process.signal(GetParam());
  EXPECT_EQ(process.read_line(patience()), "caught");
  EXPECT_EQ(process.wait(patience())->shell_status(), 9);
  EXPECT_FALSE(is_held(store.url(), "x"));
}

TEST_P(CliRunSignal, TheLockIsKeptUntilTheCommandHasEnded) {
  const LocalStore store;
  const auto log = (store.folder() / "log").string();
  const std::string script =
      "trap 'sleep 1; echo stopped >> " + log +
      "; exit 9' HUP INT QUIT TERM; echo ready; while :; do sleep 0.05; done";
  Process process(dlock_on(store.url(), {"run", "x", "--", "sh", "-c", script}));
  ASSERT_EQ(process.read_line(patience()), "ready");
  Process rival(dlock_on(store.url(), {"run", "x", "--", "sh", "-c", "echo rival >> " + log}));
  ASSERT_TRUE(testkit::eventually(patience(), [&] { return waiting(store.url(), "x") == 1; }));
  process.signal(GetParam());
  EXPECT_EQ(process.wait(patience())->shell_status(), 9);
  EXPECT_EQ(rival.wait(patience())->shell_status(), 0);
  std::ifstream lines(log);
  std::string first;
  std::string second;
  lines >> first >> second;
  EXPECT_EQ(first, "stopped");
  EXPECT_EQ(second, "rival");
}

TEST_P(CliRunSignal, EndsAWaitAndLeavesNothingBehind) {
  const LocalStore store;
  Process holder(dlock_on(store.url(), {"hold", "x"}));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  Process waiter(dlock_on(store.url(), {"run", "x", "--", "echo", "never"}));
  ASSERT_TRUE(testkit::eventually(patience(), [&] { return waiting(store.url(), "x") == 1; }));
  waiter.signal(GetParam());
  EXPECT_EQ(waiter.wait(patience())->shell_status(), 128 + GetParam());
  EXPECT_EQ(waiting(store.url(), "x"), 0U);
  EXPECT_TRUE(is_held(store.url(), "x"));
  EXPECT_EQ(waiter.unread_stdout(), "");
}

INSTANTIATE_TEST_SUITE_P(All, CliRunSignal, testing::Values(SIGHUP, SIGINT, SIGQUIT, SIGTERM),
                         [](const auto& tested) {
                           return std::string(::sigabbrev_np(tested.param));
                         });

TEST(CliRun, ASignalThatWasIgnoredStaysIgnored) {
  const LocalStore store;
  // As under nohup, or in the background of a script.
  Process process(
      {.argv = {"sh", "-c",
                std::string("trap '' INT; exec ") + dlock_binary() + " --store " + store.url() +
                    " run x -- sh -c 'echo ready; read line; echo \"$line\"'"}});
  ASSERT_EQ(process.read_line(patience()), "ready");
  process.signal(SIGINT);
  process.write("still here\n");
  EXPECT_EQ(process.read_line(patience()), "still here");
  EXPECT_EQ(process.wait(patience())->shell_status(), 0);
}

TEST(CliRun, ACtrlCReachesTheCommandOnce) {
  const LocalStore store;
  // `exec`: the shell that `script` starts would get the signal too, and die of it.
  const std::string command =
      "exec " + dlock_binary() + " --store " + store.url() +
      " run x -- sh -c 'n=0; trap \"n=\\$((n+1)); echo caught \\$n\" INT; echo ready; "
      "until [ -n \"$line\" ]; do read line; done; echo \"got $line\"; exit 5'";
  Process terminal({.argv = {"script", "-qec", command, "/dev/null"}});
  std::string seen;
  const auto wait_for_text = [&](const std::string& wanted) {
    while (seen.find(wanted) == std::string::npos) {
      const auto line = terminal.read_line(patience());
      if (!line) return false;
      seen += *line + "\n";
    }
    return true;
  };
  ASSERT_TRUE(wait_for_text("ready")) << seen;
  terminal.write("\x03");
  terminal.write(
      "\n");  // a shell that begins to read just as the signal comes tells it after a line
  ASSERT_TRUE(wait_for_text("caught 1")) << seen;
  terminal.write("word\n");  // standard input is the terminal's, still
  ASSERT_TRUE(wait_for_text("got word")) << seen;
  const auto ended = terminal.wait(patience());
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->shell_status(), 5);
  EXPECT_EQ(seen.find("caught 2"), std::string::npos) << seen;
  EXPECT_FALSE(is_held(store.url(), "x"));
}

// Something is thrown while the command runs: it ends before what holds its lock is destroyed.
TEST(CliRun, ACommandIsNotLeftBehindByAnException) {
  const pid_t command = ::fork();
  if (command == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_GT(command, 0);
  try {
    const cli::CommandGuard guard(command);
    throw std::runtime_error("no memory");
  } catch (const std::runtime_error&) {
    EXPECT_FALSE(testkit::process_start_time(command)) << "it is gone, and nobody is left to reap";
  }
  EXPECT_EQ(::waitpid(command, nullptr, WNOHANG), -1);
}

TEST(CliRun, AKilledDlockEndsItsCommandAndFreesTheLock) {
  const LocalStore store;
  Process process(
      dlock_on(store.url(), {"run", "x", "--", "sh", "-c", "echo $$; exec sleep 1000"}));
  const auto line = process.read_line(patience());
  ASSERT_TRUE(line);
  const pid_t command = std::stoi(*line);
  ASSERT_TRUE(testkit::process_start_time(command));
  process.kill_and_wait();
  const bool ended =
      testkit::eventually(within(20s), [&] { return !testkit::process_start_time(command); });
  EXPECT_TRUE(ended);
  if (!ended) ::kill(command, SIGKILL);
  EXPECT_TRUE(testkit::eventually(patience(), [&] { return !is_held(store.url(), "x"); }));
}

TEST(CliRun, ASurvivorOfTheCommandDoesNotKeepTheLock) {
  const LocalStore store;
  // It inherits the lock's descriptor, but the release is for the lock, not for the descriptor.
  const auto result = finish(dlock_on(
      store.url(), {"run", "x", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"}));
  EXPECT_EQ(result.status.shell_status(), 0);
  EXPECT_FALSE(is_held(store.url(), "x"));
  ::kill(std::stoi(result.out), SIGKILL);
}

TEST(CliRun, ABrokenPipeIsAnErrorOfItsWriterOnly) {
  const LocalStore store;
  const auto result = finish({.argv = {"sh", "-c",
                                       std::string("{ ") + dlock_binary() + " --store " +
                                           store.url() + " list --json; echo $? >&2; } | true"}});
  EXPECT_TRUE(result.err.ends_with("Broken pipe\n74\n")) << result.err;
  // The command's own broken pipe is its own: SIGPIPE has its default in it.
  const auto child =
      finish({.argv = {"sh", "-c",
                       std::string("{ ") + dlock_binary() + " --store " + store.url() +
                           " run x -- yes; echo $? >&2; } | head -1"}});
  EXPECT_EQ(child.err, "141\n");
}

}  // namespace
}  // namespace dlock::cli_test
