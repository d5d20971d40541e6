// SPDX-License-Identifier: Apache-2.0
//
// Small stacks, odd locales, clocks that jump while a process starts, standard streams that are
// closed: as without, for programs and for the command, on every store.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "testkit/process.hpp"
#include "testkit/wall_clock.hpp"
#include "tests/live/surroundings/stores.hpp"

namespace dlock::testkit {
namespace {

constexpr const char* kClosed = "<&- >&- 2>&-";

class Odd : public testing::TestWithParam<std::string> {
 protected:
  /// Runs `command` in a shell, after `before`, with `after` behind it.
  static void expect_as_ever(const std::string& before, const std::string& command,
                             const std::string& after = {}) {
    ProcessOptions options;
    options.argv = {"sh", "-c", before + " exec " + command + " " + after};
    options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE", "DLOCK_TOKEN", "DLOCK_NAME"};
    const auto finished = testkit::run(std::move(options));
    EXPECT_EQ(finished.status.shell_status(), 0)
        << before << " " << command << " " << after << "\n"
        << finished.out.substr(0, 1000) << finished.err.substr(0, 1000);
  }
  std::string program(const std::string& how) const {
    return fmt::format("{} '{}' {}", DLOCK_ODD, store_.url(), how);
  }
  std::string command() const {
    return fmt::format("{} --store '{}' run x -- true", DLOCK_BINARY, store_.url());
  }

  SurroundedStore store_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Stores, Odd, testing::ValuesIn(shared_stores()),
                         [](const auto& one) { return one.param; });

TEST_P(Odd, P13_ASmallStack) {
  expect_as_ever("ulimit -s 256;", program("stack"));
  expect_as_ever("ulimit -s 256;", command());
}

TEST_P(Odd, P13_AnOddLocale) {
  expect_as_ever("LC_ALL=de_DE.UTF-8;", "env LC_ALL=de_DE.UTF-8 " + program("locale"));
  expect_as_ever("", "env LC_ALL=de_DE.UTF-8 " + command());
}

TEST_P(Odd, P13_ClosedStandardStreams) {
  expect_as_ever("", program("plain"), kClosed);
  expect_as_ever("", command(), kClosed);
  for (const auto* one : {"<&-", ">&-", "2>&-"}) expect_as_ever("", program("plain"), one);
}

TEST_P(Odd, P13_AClockThatJumpsAtTheStart) {
  const TempDir folder("dlock-clock");
  WallClock clock(DLOCK_CLOCK_SHIM, folder.path() / "clock");
  clock.be_wrong_by(1h);
  ProcessOptions options;
  options.argv = {DLOCK_BINARY, "--store", store_.url(), "hold", "x"};
  options.env = clock.environment();
  options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE", "DLOCK_TOKEN", "DLOCK_NAME"};
  Process holder(std::move(options));
  for (int i = 0; i < 40; ++i) {
    clock.be_wrong_by(i % 2 == 0 ? -1h : 2h);
    std::this_thread::sleep_for(5ms);  // at moments all over its start
  }
  EXPECT_THAT(holder.read_line(patience()).value_or(""), testing::HasSubstr("\"held\""))
      << holder.collected_stderr();
  EXPECT_EQ(holder.read_line(within(1500ms)), std::nullopt) << "neither suspect nor lost";
  auto rival = LockManager::open(store_.url(), quiet());
  EXPECT_FALSE(rival.lock("x")->try_acquire());
  holder.close_stdin();
  EXPECT_THAT(holder.read_line(patience()).value_or(""), testing::HasSubstr("released"));
  EXPECT_TRUE(rival.lock("x")->acquire({.wait = 5s}));
}

}  // namespace
}  // namespace dlock::testkit
