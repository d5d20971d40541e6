// SPDX-License-Identifier: Apache-2.0
//
// `dlock run` when its lock goes or its terminal does: who is told, who is killed, who is let be.
// On the local store, where a lock whose file is removed is lost.
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/process/process_tree.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

constexpr auto kSoon = 20s;

/// Gone at the end, whatever the test found.
class Survivor {
 public:
  explicit Survivor(Process& process) {
    const auto line = process.read_line(patience());
    if (line) pid_ = std::stoi(*line);
    EXPECT_TRUE(alive()) << process.collected_stderr();
  }
  Survivor(const Survivor&) = delete;
  Survivor& operator=(const Survivor&) = delete;
  ~Survivor() {
    if (alive()) ::kill(pid_, SIGKILL);
  }
  bool alive() const { return pid_ > 0 && testkit::process_start_time(pid_).has_value(); }
  bool ends() const {
    return testkit::eventually(within(kSoon), [&] { return !alive(); });
  }

 private:
  pid_t pid_ = -1;
};

/// `dlock run` as the first process of a terminal's session.
class OnTerminal {
 public:
  OnTerminal(const std::string& url, const std::string& script) {
    std::vector<std::string> words = {dlock_binary(), "--store", url,  "run", "x",
                                      "--",           "sh",      "-c", script};
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    EXPECT_GT(pid_, 0);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  ~OnTerminal() {
    hang_up();
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);  // and its command with it
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void type(std::string_view keys) const {
    EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  /// Waits for it.
  bool shows(const std::string& text) {
    const auto until = testkit::Clock::now() + kSoon;
    while (seen_.find(text) == std::string::npos) {
      pollfd readable{terminal_, POLLIN, 0};
      std::array<char, 256> part{};
      const bool in_time = testkit::Clock::now()<until&& ::poll(&readable, 1, 20'000)> 0;
      const auto got = in_time ? ::read(terminal_, part.data(), part.size()) : 0;
      if (got <= 0) {
        ADD_FAILURE() << "no '" << text << "' in: " << seen_;
        return false;
      }
      seen_.append(part.data(), static_cast<std::size_t>(got));
    }
    return true;
  }
  void hang_up() {
    if (terminal_ >= 0) ::close(std::exchange(terminal_, -1));
  }
  /// The status of its end; -1: it goes on.
  int end() {
    int raw = 0;
    const auto ended = [&] { return ::waitpid(pid_, &raw, WNOHANG) == pid_; };
    if (!testkit::eventually(within(kSoon), ended)) return -1;
    pid_ = -1;
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  }

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string seen_;
};

class CliRunLoss : public testing::Test {
 protected:
  std::unique_ptr<Process> run(std::vector<std::string> options, const std::string& script) const {
    std::vector<std::string> arguments{"run", "x"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "sh", "-c", script});
    return std::make_unique<Process>(dlock_on(store_.url(), arguments));
  }
  /// Whoever holds a lock has lost it.
  void lose() const {
    for (const auto& entry : std::filesystem::directory_iterator(store_.folder() / "locks")) {
      if (entry.path().filename().string().starts_with('.')) continue;
      std::filesystem::remove(entry.path());
    }
  }
  /// The status of its end; -1: it goes on.
  static int end_of(Process& process) {
    const auto ended = process.wait(within(kSoon));
    return ended ? ended->shell_status() : -1;
  }

  const LocalStore store_;
};

/// Does not listen, and says who it is.
constexpr const char* kDeaf = "sh -c 'trap \"\" TERM; echo $$; exec sleep 1000'";

TEST_F(CliRunLoss, TheWholeTreeIsToldAndCanEndByItself) {
  const std::string inner =
      "trap \"echo inner; exit 0\" TERM; echo ready; for i in $(seq 1200); do sleep 0.05; done";
  const auto process =
      run({"--kill-after", "30s"}, "trap 'wait; echo outer; exit 3' TERM; sh -c '" + inner +
                                       "' & while :; do sleep 0.05; done");
  ASSERT_EQ(process->read_line(patience()), "ready");
  lose();
  EXPECT_EQ(process->read_line(within(kSoon)), "inner") << process->collected_stderr();
  EXPECT_EQ(process->read_line(within(kSoon)), "outer");
  EXPECT_EQ(end_of(*process), 76) << "not the command's own";
  EXPECT_NE(process->collected_stderr().find("its own status: 3"), std::string::npos)
      << process->collected_stderr();
}

TEST_F(CliRunLoss, WhatTheCommandLeavesBehindIsKilled) {
  const auto process = run({"--kill-after", "30s"}, std::string("trap 'exit 0' TERM; ") + kDeaf +
                                                        " & while :; do sleep 0.05; done");
  const Survivor deaf(*process);
  lose();
  EXPECT_EQ(end_of(*process), 76);
  EXPECT_TRUE(deaf.ends());
}

// Its parent has ended, and dlock is in that one's place.
TEST_F(CliRunLoss, AnOrphanIsKilled) {
  const auto process =
      run({"--kill-after", "30s"}, std::string("trap 'exit 0' TERM; (setsid ") + kDeaf +
                                       " &); while :; do sleep 0.05; done");
  const Survivor deaf(*process);
  lose();
  EXPECT_EQ(end_of(*process), 76);
  EXPECT_TRUE(deaf.ends());
}

TEST_F(CliRunLoss, WhoDoesNotListenIsKilledAfterKillAfter) {
  const auto process = run({"--kill-after", "4s"},
                           "trap '' TERM; sleep 1000 & echo $!; while :; do sleep 0.05; done");
  const Survivor inner(*process);
  lose();
  ASSERT_TRUE(process->stderr_shows("ending the command", within(kSoon)));
  const auto told = testkit::Clock::now();
  EXPECT_EQ(end_of(*process), 76);
  EXPECT_GT(testkit::Clock::now() - told, 3s);
  EXPECT_LT(testkit::Clock::now() - told, 7500ms);
  EXPECT_TRUE(inner.ends());
}

TEST_F(CliRunLoss, WarnLetsEverythingBe) {
  const auto process =
      run({"--on-lost", "warn"}, "sleep 1000 & echo $!; read line; echo $line; exit 0");
  const Survivor inner(*process);
  lose();
  ASSERT_TRUE(process->stderr_shows("goes on without it", within(kSoon)));
  process->write("still here\n");
  EXPECT_EQ(process->read_line(within(kSoon)), "still here");
  EXPECT_EQ(end_of(*process), 76);
  EXPECT_TRUE(inner.alive());
}

// The terminal tells its session's first process alone.
TEST_F(CliRunLoss, AHangupReachesTheCommand) {
  const auto told = store_.folder() / "told";
  OnTerminal run(store_.url(), "trap 'echo hung up > " + told.string() +
                                   "; exit 7' HUP; echo ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(run.shows("ready"));
  run.hang_up();
  EXPECT_EQ(run.end(), 7);
  EXPECT_EQ(testkit::read_file(told), "hung up\n");
}

// dlock is stopped meanwhile, so that a second one would be told apart.
TEST_F(CliRunLoss, ACtrlCIsTheTerminalsAlone) {
  OnTerminal run(store_.url(),
                 "n=0; trap 'n=$((n+1)); echo caught $n' INT; trap 'echo $n in all; exit 5' USR1; "
                 "echo ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(run.shows("ready"));
  ASSERT_EQ(::kill(run.pid(), SIGSTOP), 0);
  run.type("\x03");
  EXPECT_TRUE(run.shows("caught 1"));
  ::kill(run.pid(), SIGCONT);
  ::kill(run.pid(), SIGUSR1);
  EXPECT_TRUE(run.shows("1 in all"));
  EXPECT_EQ(run.end(), 5);
}

// Something is thrown while the command runs: what it has started ends with it.
TEST_F(CliRunLoss, NothingIsLeftBehindByAnException) {
  Process process({.argv = {"sh", "-c", std::string(kDeaf) + " & wait"}});
  const Survivor deaf(process);
  {
    const pid_t command = ::fork();
    if (command == 0) {
      ::pause();
      ::_exit(0);
    }
    ASSERT_GT(command, 0);
    const cli::CommandGuard guard(command);
  }
  EXPECT_TRUE(deaf.ends());
}

}  // namespace
}  // namespace dlock::cli_test
