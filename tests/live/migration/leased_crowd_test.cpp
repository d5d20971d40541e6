// SPDX-License-Identifier: Apache-2.0
//
// A thousand programs of a plan with a leased gate, each with its own connections.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/live/migration/board.hpp"
#include "tests/live/migration/crowd.hpp"
#include "tests/live/migration/leased_operator.hpp"

namespace dlock::fleet {
namespace {

using testkit::eventually;
using testkit::Process;

constexpr std::size_t kProcesses = 20;
constexpr std::size_t kPrograms = 1000;
constexpr auto kPatience = 120s;

class LeasedCrowd : public testing::Test {
 protected:
  std::unique_ptr<Process> start_crowd(std::size_t number) const {
    const auto programs = kPrograms / kProcesses;
    testkit::ProcessOptions options;
    options.argv = {DLOCK_FLEET,
                    "--crowd",
                    std::to_string(programs),
                    "--first",
                    std::to_string(number * programs),
                    "--config",
                    stores_.route().string(),
                    "--board",
                    file().string()};
    return std::make_unique<Process>(std::move(options));
  }
  std::filesystem::path file() const { return folder_ / "board"; }
  /// Waits until every program was granted a lock once more.
  void expect_all_granted(const std::string& state) const {
    EXPECT_EQ(by_.state(), state);
    std::vector<std::uint64_t> before;
    for (std::size_t i = 0; i < kPrograms; ++i) before.push_back(board_.grants(i));
    std::size_t next = 0;
    eventually(testkit::within(kPatience), [&] {
      while (next < kPrograms && board_.grants(next) > before[next]) ++next;
      return next == kPrograms;
    });
    EXPECT_EQ(next, kPrograms) << "that program is granted nothing in " << state;
    EXPECT_EQ(board_.complaint(), "") << state;
  }

  const LeasedStores stores_{"memcached", "zookeeper"};
  const LeasedOperator by_{stores_};
  testkit::TempDir folder_{"dlock-crowd"};
  Board board_{file()};
};

TEST_F(LeasedCrowd, AThousandProgramsFollowEveryTurnAndKeepTheirHolds) {
  by_.start(4s);
  std::vector<std::unique_ptr<Process>> processes;
  for (std::size_t i = 0; i < kProcesses; ++i) processes.push_back(start_crowd(i));
  expect_all_granted("S_ALONE");
  by_.both();
  expect_all_granted("S_THEN_T");
  by_.target_alone();
  expect_all_granted("T_ALONE");
  by_.turn({"rollback"}, "S_ALONE");
  expect_all_granted("S_ALONE");
  by_.both();
  by_.target_alone();
  by_.turn({"finish"}, "FINAL");
  expect_all_granted("FINAL");
  const StoreView target(stores_.url("home"));
  for (std::size_t i = 0; i < kPrograms; i += kPrograms / kProcesses) {
    EXPECT_TRUE(target.await(long_name(i), true)) << i;
  }
  for (auto& process : processes) process->close_stdin();
  for (auto& process : processes) {
    const auto status = process->wait(testkit::within(kPatience));
    EXPECT_TRUE(status && status->success()) << process->collected_stderr();
  }
  EXPECT_EQ(board_.complaint(), "");
}

}  // namespace
}  // namespace dlock::fleet
