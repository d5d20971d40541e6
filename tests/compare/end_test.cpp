// SPDX-License-Identifier: Apache-2.0
//
// The suite ended at random moments: no process stays, no folder after a signal, and what `kill -9`
// left is removed by the next run. DLOCK_COMPARE_ENDS=20 makes twenty signals and five kills.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "testkit/process.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {
namespace {

using testkit::within;

/// Processes whose environment or command line names the folder: what a run has started.
std::vector<std::string> processes_of(const std::filesystem::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (pid == std::to_string(::getpid())) continue;
    for (const char* file : {"environ", "cmdline"}) {
      std::ifstream in(entry.path() / file);
      const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      if (text.find(folder.string()) == std::string::npos) continue;
      found.push_back(pid);
      break;
    }
  }
  return found;
}

class CompareEnd : public testing::Test {
 protected:
  std::unique_ptr<testkit::Process> start(std::vector<std::string> options) {
    std::vector<std::string> argv{DLOCK_COMMAND, "compare", "--quick", "--out",
                                  out.path().string()};
    argv.insert(argv.end(), options.begin(), options.end());
    return std::make_unique<testkit::Process>(
        testkit::ProcessOptions{.argv = argv,
                                .env = {{"TMPDIR", temporary.path().string()}},
                                .stdout_to = testkit::ProcessOptions::Output::null});
  }

  int rounds() const {
    const char* text = std::getenv("DLOCK_COMPARE_ENDS");
    return text == nullptr ? 4 : std::atoi(text);
  }
  std::chrono::milliseconds moment() {
    return std::chrono::milliseconds(std::uniform_int_distribution<int>(10, 5000)(random));
  }

  /// Speed comes first; two of four rounds begin where all servers run at once.
  static std::vector<std::string> part(int round) {
    if (round % 4 < 2) return {};
    return {"--scenarios", "safety,pitfalls"};
  }

  testkit::TempDir temporary;
  testkit::TempDir out;
  std::mt19937 random{std::random_device{}()};
};

TEST_F(CompareEnd, LeavesNothingAfterASignal) {
  for (int round = 0; round < rounds(); ++round) {
    const int signal = round % 2 == 0 ? SIGINT : SIGTERM;
    const auto when = moment();
    SCOPED_TRACE("signal " + std::to_string(signal) + " after " + std::to_string(when.count()) +
                 " ms");
    auto run = start(part(round));
    ASSERT_FALSE(run->wait(within(when))) << run->collected_stderr();
    run->signal(signal);
    const auto status = run->wait(within(std::chrono::seconds(60)));
    ASSERT_TRUE(status);
    // Before its signals are in its hands it ends by them, and has made nothing yet.
    EXPECT_EQ(status->shell_status(), 128 + signal) << run->collected_stderr();
    EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
    EXPECT_TRUE(testkit::eventually(within(std::chrono::seconds(5)),
                                    [&] { return processes_of(temporary.path()).empty(); }));
  }
}

TEST_F(CompareEnd, TheNextRunRemovesWhatAKillLeft) {
  for (int round = 0; round < std::max(1, rounds() / 4); ++round) {
    auto run = start(part(round * 2));
    ASSERT_FALSE(run->wait(within(moment())));
    run->signal(SIGKILL);
    ASSERT_TRUE(run->wait(within(std::chrono::seconds(10))));
    EXPECT_TRUE(testkit::eventually(within(std::chrono::seconds(10)),
                                    [&] { return processes_of(temporary.path()).empty(); }));
  }
  auto next = start({"--stores", "local", "--scenarios", "safety.holder_killed"});
  const auto status = next->wait(within(std::chrono::seconds(60)));
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->success()) << next->collected_stderr();
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

}  // namespace
}  // namespace dlock::compare
