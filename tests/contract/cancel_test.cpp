// SPDX-License-Identifier: Apache-2.0
//
// Stopping an acquire at any moment leaves nothing behind.
#include <future>
#include <random>
#include <stop_token>
#include <thread>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class CancelContract : public Contract {
 protected:
  /// Starts an acquire and stops it after a random time; how it ended.
  error_code acquire_and_stop(LockManager& manager, std::chrono::microseconds longest) {
    std::stop_source stop;
    auto acquiring = std::async(std::launch::async, [&] {
      error_code ec;
      (void)manager.lock("a")->acquire({}, stop.get_token(), ec);  // a grant is given back at once
      return ec;
    });
    std::uniform_int_distribution<long> moment(0, longest.count());
    std::this_thread::sleep_for(std::chrono::microseconds(moment(random_)));
    stop.request_stop();
    return acquiring.get();
  }

  std::mt19937 random_{20261120};  // NOLINT: the same moments at each run
};
DLOCK_CONTRACT(CancelContract);

TEST_P(CancelContract, F56_AtRandomMomentsOfAWaitLeavesNoWaiter) {
  auto manager = open();
  manager.connect();
  const auto other = peer("a");
  ASSERT_TRUE(other->wait_held(patience()));
  for (int i = 0; i < 60; ++i) EXPECT_EQ(acquire_and_stop(manager, 4ms), errc::cancelled);
  EXPECT_TRUE(waiters_become("a", 0));
  EXPECT_TRUE(observer().status("a").held) << "by the one who held it";
  other->release();
  EXPECT_TRUE(manager.lock("a")->acquire({.wait = 30s}));
}

TEST_P(CancelContract, F56_AtRandomMomentsOfAGrantLeavesNoHolder) {
  auto manager = open();
  manager.connect();
  int granted = 0;
  for (int i = 0; i < 60; ++i) {
    const auto ec = acquire_and_stop(manager, 1500us);
    if (!ec) ++granted;
    EXPECT_TRUE(!ec || ec == errc::cancelled) << ec.message();
  }
  EXPECT_TRUE(becomes_free("a"));
  RecordProperty("granted", granted);
}

TEST_P(CancelContract, BeforeItsStart) {
  auto manager = open();
  std::stop_source stop;
  stop.request_stop();
  error_code ec;
  const auto held = manager.lock("a")->acquire({}, stop.get_token(), ec);
  EXPECT_TRUE(ec == errc::cancelled || (!ec && held)) << ec.message();
}

TEST_P(CancelContract, OfOneWaiterLeavesTheOthersInTheQueue) {
  auto manager = open();
  const auto other = peer("a");
  ASSERT_TRUE(other->wait_held(patience()));
  std::stop_source stop;
  auto first = std::async(std::launch::async, [&] {
    error_code ec;
    (void)manager.lock("a")->acquire({}, stop.get_token(), ec);
    return ec;
  });
  ASSERT_TRUE(waiters_become("a", 1));
  auto second = std::async(std::launch::async, [&] { return manager.lock("a")->acquire(); });
  ASSERT_TRUE(waiters_become("a", 2));
  stop.request_stop();
  EXPECT_EQ(first.get(), errc::cancelled);
  EXPECT_TRUE(waiters_become("a", 1));
  other->release();
  EXPECT_EQ(second.get().state(), HandleState::held);
}

}  // namespace
}  // namespace dlock::contract
