// SPDX-License-Identifier: Apache-2.0
//
// How soon a released permit reaches a waiter of the same manager, and one of another process.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <future>
#include <string>

#include "dlock/lock_manager.hpp"
#include "testkit/await.hpp"
#include "testkit/process.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;

constexpr double kMostMs = 50;
constexpr std::size_t kTries = 10;

using Times = std::array<Clock::duration, kTries>;

double median_ms(Times times) {
  std::sort(times.begin(), times.end());
  const auto sum = times[kTries / 2 - 1] + times[kTries / 2];
  return std::chrono::duration<double, std::milli>(sum).count() / 2;
}

class PermitTime : public testing::TestWithParam<const char*> {
 protected:
  bool is_waited_for() { return !locks_.semaphore_status("s").waiting.empty(); }

  const RunningStore store_ = start_store(GetParam());
  const std::string url_ = store_.url + (std::string_view(GetParam()) == "zookeeper" ? "app" : "");
  LockManager locks_ = LockManager::open(url_);
  Semaphore permits_ = locks_.semaphore("s", 2);
};

INSTANTIATE_TEST_SUITE_P(Stores, PermitTime, testing::Values("local", "redis", "zookeeper"),
                         [](const auto& store) { return std::string(store.param); });

TEST_P(PermitTime, AWaiterOfTheSameManagerGetsAReleasedPermitWithin50Ms) {
  Times times{};
  for (auto& time : times) {
    auto kept = permits_.acquire();
    auto released = permits_.acquire();
    auto waiter = std::async(std::launch::async, [&] {
      auto got = permits_.acquire();
      return std::pair(Clock::now(), got.release());
    });
    ASSERT_TRUE(eventually(patience(), [&] { return is_waited_for(); }));
    const auto begun = Clock::now();
    EXPECT_FALSE(released.release());
    const auto [got_at, error] = waiter.get();
    EXPECT_FALSE(error);
    time = got_at - begun;
  }
  EXPECT_LE(median_ms(times), kMostMs);
}

TEST_P(PermitTime, AWaiterOfAnotherProcessGetsAReleasedPermitWithin50Ms) {
  Times times{};
  for (auto& time : times) {
    auto kept = permits_.acquire();
    auto released = permits_.acquire();
    ProcessOptions options;
    options.argv = {DLOCK_BINARY, "-q", "--store", url_, "hold", "s", "--of", "2"};
    options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
    Process waiter(options);
    ASSERT_TRUE(eventually(patience(), [&] { return is_waited_for(); }))
        << waiter.collected_stderr();
    const auto begun = Clock::now();
    EXPECT_FALSE(released.release());
    const auto line = waiter.read_line(patience());
    time = Clock::now() - begun;
    ASSERT_NE(line.value_or("").find("\"held\""), std::string::npos) << waiter.collected_stderr();
    waiter.close_stdin();
    EXPECT_TRUE(waiter.wait(patience()));
  }
  EXPECT_LE(median_ms(times), kMostMs);
}

}  // namespace
}  // namespace dlock::testkit
