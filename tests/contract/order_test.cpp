// SPDX-License-Identifier: Apache-2.0
//
// Who is next, and with which token.
#include <atomic>
#include <future>
#include <vector>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class OrderContract : public Contract {};
DLOCK_CONTRACT(OrderContract);

// On a store that is not fair, everybody is served at least.
TEST_P(OrderContract, WaitersAreServedInTheOrderOfTheirArrivalWhereTheStoreIsFair) {
  constexpr std::size_t kWaiters = 6;
  auto holder = open();
  auto held = holder.lock("a")->acquire();
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::size_t i = 0; i < kWaiters; ++i) {
    peers.push_back(peer("a"));
    ASSERT_TRUE(waiters_become("a", i + 1));
  }
  EXPECT_FALSE(held.release());
  std::vector<std::size_t> order;
  while (order.size() < kWaiters) {
    std::optional<std::size_t> served;
    ASSERT_TRUE(eventually(patience(), [&] {
      for (std::size_t i = 0; i < kWaiters; ++i) {
        if (peers[i] && peers[i]->is_held()) served = i;
      }
      return served.has_value();
    })) << order.size();
    order.push_back(*served);
    peers[*served]->release();
    peers[*served].reset();
  }
  if (!capabilities().fair) return;
  for (std::size_t i = 0; i < kWaiters; ++i) EXPECT_EQ(order[i], i);
}

TEST_P(OrderContract, TokensRiseOverManyGrantsAndOverRestartsOfTheClient) {
  if (capabilities().token == TokenStrength::none) {
    EXPECT_FALSE(open().lock("a")->acquire().token());
    return;
  }
  std::uint64_t last = 0;
  const auto take = [&last](LockHandle held) {
    ASSERT_TRUE(held.token());
    EXPECT_GT(*held.token(), last);
    EXPECT_LT(*held.token(), std::uint64_t{1} << 53);
    last = *held.token();
    EXPECT_FALSE(held.release());
  };
  for (int run = 0; run < 4; ++run) {
    auto manager = open();
    for (int i = 0; i < 50; ++i) take(manager.lock("a")->acquire());
    const auto other = peer("a");
    const auto token = other->wait_held(patience());
    ASSERT_TRUE(token);
    EXPECT_GT(*token, last);
    last = *token;
    other->release();
  }
}

TEST_P(OrderContract, TokensRiseFromOneConcurrentHolderToTheNext) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 25;
  // Guarded by the lock itself; atomic, since ThreadSanitizer does not see managers meet in a
  // store.
  std::atomic<std::uint64_t> last = 0;
  std::vector<std::future<void>> workers;
  for (int t = 0; t < kThreads; ++t) {
    workers.push_back(std::async(std::launch::async, [&] {
      auto manager = open();
      const auto lock = manager.lock("a");
      for (int i = 0; i < kRounds; ++i) {
        auto held = lock->acquire();
        const auto token = held.token().value_or(last.load() + 1);
        EXPECT_GT(token, last.load());
        last.store(token);
        EXPECT_FALSE(held.release());
      }
    }));
  }
  for (auto& worker : workers) worker.get();
}

}  // namespace
}  // namespace dlock::contract
