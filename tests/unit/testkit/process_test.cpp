// SPDX-License-Identifier: Apache-2.0
#include "testkit/process.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <system_error>
#include <thread>

#include "testkit/temp_dir.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

ProcessOptions shell(std::string script) { return {.argv = {"sh", "-c", std::move(script)}}; }

TEST(Process, GivesOutputLinesAndTheExitStatus) {
  Process process(shell("echo one; echo two; printf three; exit 7"));
  EXPECT_EQ(process.read_line(patience()), "one");
  EXPECT_EQ(process.read_line(patience()), "two");
  EXPECT_EQ(process.read_line(patience()), "three");
  EXPECT_EQ(process.read_line(patience()), std::nullopt);
  const auto status = process.wait(patience());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 7);
  EXPECT_EQ(status->shell_status(), 7);
}

TEST(Process, ReadLineGivesUpAtItsDeadline) {
  Process process(shell("read line; echo got $line"));
  EXPECT_EQ(process.read_line(within(20ms)), std::nullopt);
  EXPECT_TRUE(process.running());
  EXPECT_TRUE(process.write("it\n"));
  EXPECT_EQ(process.read_line(patience()), "got it");
}

TEST(Process, WaitReadsAnyAmountOfOutput) {
  const Finished done = run(shell("head -c 1000000 /dev/zero; head -c 500000 /dev/zero >&2"));
  EXPECT_TRUE(done.status.success());
  EXPECT_EQ(done.out.size(), 1000000u);
  EXPECT_EQ(done.err.size(), 500000u);
}

TEST(Process, StandardErrorNeedsNoReader) {
  Process process(shell("head -c 500000 /dev/zero >&2; echo over; read line; echo warned >&2"));
  EXPECT_EQ(process.read_line(patience()), "over");
  EXPECT_FALSE(process.stderr_shows("warned", within(1ms)));
  process.write("\n");
  EXPECT_TRUE(process.stderr_shows("warned", patience()));
}

TEST(Process, StandardErrorKeepsWhatTwoWriteAtOnce) {
  const std::string some = "for i in $(seq 2000); do echo line >&2; done";
  const Finished done = run(shell(some + " & " + some + "; wait"));
  EXPECT_TRUE(done.status.success());
  EXPECT_EQ(done.err.size(), 2 * 2000 * std::string_view("line\n").size());
}

TEST(Process, TellsWhichSignalEndedIt) {
  Process process(shell("exec sleep 1000"));
  EXPECT_TRUE(process.signal(SIGTERM));
  const auto status = process.wait(patience());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signal, SIGTERM);
  EXPECT_EQ(status->shell_status(), 128 + SIGTERM);
  EXPECT_FALSE(process.signal(SIGTERM));  // not to whoever has the pid next
}

TEST(Process, PauseReturnsOnceTheProcessStands) {
  Process process({.argv = {"cat"}});
  ASSERT_TRUE(process.pause());
  process.write("hello\n");
  EXPECT_EQ(process.read_line(within(50ms)), std::nullopt);
  EXPECT_TRUE(process.resume());
  EXPECT_EQ(process.read_line(patience()), "hello");
  process.close_stdin();
  EXPECT_TRUE(process.wait(patience()));
  EXPECT_FALSE(process.pause());
}

TEST(Process, EnvironmentIsAddedReplacedAndRemoved) {
  ::setenv("TESTKIT_OLD", "old", 1);
  ::setenv("TESTKIT_GONE", "gone", 1);
  ProcessOptions options = shell("echo $TESTKIT_NEW,$TESTKIT_OLD,$TESTKIT_GONE; pwd");
  options.env = {{"TESTKIT_NEW", "1"}, {"TESTKIT_OLD", "2"}};
  options.unset_env = {"TESTKIT_GONE"};
  options.working_directory = "/";
  EXPECT_EQ(run(std::move(options)).out, "1,2,\n/\n");
}

TEST(Process, RunGivesInputAndStopsAtTheDeadline) {
  EXPECT_EQ(run({.argv = {"cat"}}, "text").out, "text");
  EXPECT_THROW(run(shell("exec sleep 1000"), {}, within(20ms)), std::runtime_error);
}

TEST(Process, AProgramThatIsNotThereThrows) {
  EXPECT_THROW(Process({.argv = {"no-such-program-here"}}), std::system_error);
  EXPECT_THROW(Process({.argv = {"/no/such/program"}}), std::system_error);
}

TEST(Process, StdinMayBeEmptyOrClosed) {
  ProcessOptions null = shell("cat; echo end");
  null.stdin_from = ProcessOptions::Input::null;
  EXPECT_EQ(run(std::move(null)).out, "end\n");
  ProcessOptions closed = shell("ls /proc/self/fd | grep -cx 0 || true");
  closed.stdin_from = ProcessOptions::Input::closed;
  Process process(std::move(closed));
  ASSERT_TRUE(process.wait(patience()));
}

TEST(Process, InheritsOnlyTheDescriptorsItIsTo) {
  const TempDir folder;
  const int leaked = ::open((folder / "leaked").c_str(), O_CREAT | O_RDWR, 0600);
  const int kept = ::open((folder / "kept").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ProcessOptions options{.argv = {"ls", "-l", "/proc/self/fd"}};
  options.keep_fds = {kept};
  const std::string listing = run(std::move(options)).out;
  EXPECT_THAT(listing, HasSubstr("kept"));
  EXPECT_THAT(listing, testing::Not(HasSubstr("leaked")));
  ::close(leaked);
  ::close(kept);
}

TEST(Process, ALogFileTakesBothOutputs) {
  const TempDir folder;
  ProcessOptions options = shell("echo out; echo err >&2");
  options.log_file = folder / "log";
  Process process(std::move(options));
  ASSERT_TRUE(process.wait(patience()));
  EXPECT_EQ(read_file(folder / "log"), "out\nerr\n");
}

TEST(Process, WriteToAnEndedProcessIsFalseAndNoSignal) {
  Process process(shell("exit 0"));
  ASSERT_TRUE(process.wait(patience()));
  EXPECT_FALSE(process.write(std::string(100000, 'x')));
}

TEST(Process, AClosedStdoutIsABrokenPipe) {
  Process process(shell("read line; while echo more; do :; done 2>/dev/null"));
  process.close_stdout();
  process.write("\n");
  const auto status = process.wait(patience());
  ASSERT_TRUE(status);
  EXPECT_NE(status->shell_status(), 0);
}

// The thread that asked for it may end; the process stays.
TEST(Process, OutlivesTheThreadThatStartedIt) {
  std::unique_ptr<Process> process;
  std::thread([&] { process = std::make_unique<Process>(ProcessOptions{.argv = {"cat"}}); }).join();
  EXPECT_FALSE(process->wait(within(50ms)));
  process->close_stdin();
  EXPECT_TRUE(process->wait(patience())->success());
}

// Killed with SIGKILL, so that no destructor has a say. This program runs itself once more, and
// that second process is the one that starts a child and is killed.
TEST(Process, DiesWithTheProcessThatStartedIt) {
  if (std::getenv("TESTKIT_START_A_CHILD") != nullptr) {
    Process child({.argv = {"sleep", "1000"}});
    std::cout << "\nchild " << child.pid() << std::endl;
    child.wait(within(1h));
    return;
  }
  Process middle(
      {.argv = {"/proc/self/exe", "--gtest_filter=Process.DiesWithTheProcessThatStartedIt"},
       .env = {{"TESTKIT_START_A_CHILD", "1"}}});
  pid_t grandchild = 0;
  while (grandchild == 0) {
    const auto line = middle.read_line(patience());
    ASSERT_TRUE(line);
    if (line->starts_with("child ")) grandchild = std::stoi(line->substr(6));
  }
  EXPECT_TRUE(process_start_time(grandchild));
  middle.kill_and_wait();
  EXPECT_TRUE(eventually(patience(), [&] { return !process_start_time(grandchild); }));
}

TEST(Process, StartTimeTellsProcessesApart) {
  EXPECT_TRUE(process_start_time(::getpid()));
  EXPECT_EQ(process_start_time(::getpid()), process_start_time(::getpid()));
  Process process({.argv = {"sleep", "1000"}});
  EXPECT_TRUE(process_start_time(process.pid()));
  process.kill_and_wait();
  EXPECT_FALSE(process_start_time(process.pid()));
}

TEST(TempDir, IsThereAndThenGone) {
  std::filesystem::path path;
  {
    const TempDir folder("some-test");
    path = folder.path();
    std::filesystem::create_directories(folder / "a" / "b");
    write_file(folder / "a" / "b" / "file", "content");
    EXPECT_EQ(read_file(folder / "a" / "b" / "file"), "content");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace dlock::testkit
