// SPDX-License-Identifier: Apache-2.0
//
// Who owns a lock: the handle, and nothing else. Neither its thread, nor its coroutine's thread,
// nor whatever else has the same hash.
#include <pthread.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "dlock/async.hpp"
#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

namespace asio = boost::asio;

class OwnerContract : public Contract {};
DLOCK_CONTRACT(OwnerContract);

TEST_P(OwnerContract, F17_HandlersMayTakeLocksAndWaitForThem) {
  auto manager = open();
  std::promise<void> done;
  auto first = manager.lock("a")->acquire();
  manager.lock("b")->async_acquire([&](error_code ec, LockHandle outer) {
    EXPECT_FALSE(ec) << ec.message();
    auto inner = manager.lock("c")->acquire({.wait = 30s});  // blocks the callback thread
    EXPECT_FALSE(inner.release());
    EXPECT_FALSE(outer.release());
    done.set_value();
  });
  ASSERT_EQ(done.get_future().wait_for(60s), std::future_status::ready);
  std::promise<void> told;
  first.on_state([&](HandleState state, LossReason) {
    if (state != HandleState::lost) return;
    auto other = manager.lock("b")->acquire({.wait = 30s});
    EXPECT_FALSE(other.release());
    told.set_value();
  });
  harness().take_away(observer(), url(), "a");
  EXPECT_EQ(told.get_future().wait_for(60s), std::future_status::ready);
}

/// Two tasks of one thread that meet at a lock.
struct Meeting {
  std::function<void()> take_away;
  bool second_holds = false;
  bool first_is_done = false;
};

asio::awaitable<void> loses_it(std::shared_ptr<DistributedLock> lock, Meeting* meeting) {
  AcquireOptions options;
  options.wait = 30s;
  auto held = co_await lock->async_acquire(options, asio::use_awaitable);
  meeting->take_away();
  EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  while (!meeting->second_holds) co_await asio::post(asio::use_awaitable);
  auto [ec] = co_await async_release(held, asio::as_tuple(asio::use_awaitable));
  EXPECT_EQ(ec, errc::lock_lost) << ec.message();
  meeting->first_is_done = true;
}

asio::awaitable<void> comes_after(std::shared_ptr<DistributedLock> lock, Meeting* meeting) {
  AcquireOptions options;
  options.wait = 60s;
  auto held = co_await lock->async_acquire(options, asio::use_awaitable);
  meeting->second_holds = true;
  while (!meeting->first_is_done) co_await asio::post(asio::use_awaitable);
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(lock->try_acquire()) << "it is still taken";
  auto [ec] = co_await async_release(held, asio::as_tuple(asio::use_awaitable));
  EXPECT_FALSE(ec) << ec.message();
}

TEST_P(OwnerContract, F45_ATasksReleaseLeavesTheNextTaskOfItsThreadAlone) {
  auto manager = open();
  asio::io_context loop;
  Meeting meeting;
  meeting.take_away = [&] {
    harness().take_away(observer(), url(), "a");
    asio::co_spawn(loop, comes_after(manager.lock("a"), &meeting),
                   [](const std::exception_ptr& error) { EXPECT_FALSE(error); });
  };
  asio::co_spawn(loop, loses_it(manager.lock("a"), &meeting),
                 [](const std::exception_ptr& error) { EXPECT_FALSE(error); });
  loop.run();
  EXPECT_TRUE(meeting.first_is_done);
  EXPECT_TRUE(becomes_free("a"));
}

// Names that meet in every table of up to that many buckets, taken and given back while others are.
TEST_P(OwnerContract, F47_NamesOfOneHashBucketStayApartAndLeaveNothing) {
  constexpr std::size_t kBuckets = 1024;
  constexpr std::size_t kNames = 6;
  constexpr int kThreads = 6;
  constexpr int kRounds = 20;
  std::vector<std::string> names;
  for (int i = 0; names.size() < kNames; ++i) {
    const auto name = "n/" + std::to_string(i);
    if (std::hash<std::string>{}(name) % kBuckets == 7) names.push_back(name);
  }
  auto manager = open();
  std::vector<long> counts(kNames, 0);  // nothing but the locks guards them
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const auto which = static_cast<std::size_t>(i + t) % kNames;
        Mutex mutex(manager.lock(names[which]));  // gone at the end of each round
        const std::scoped_lock guard(mutex);
        const long read = counts[which];
        std::this_thread::yield();
        counts[which] = read + 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  long sum = 0;
  for (const auto count : counts) sum += count;
  EXPECT_EQ(sum, kThreads * kRounds);
  for (const auto& name : names) EXPECT_TRUE(becomes_free(name)) << name;
}

// The thread that does the work ends without a word, its process goes on: so does nothing of it.
TEST_P(OwnerContract, F85_TheLockGoesWithTheThreadThatHadTheHandle) {
  auto manager = open();
  std::promise<void> holds;
  std::promise<void> end;
  std::thread worker([&] {
    const auto held = manager.lock("a")->acquire();
    holds.set_value();
    end.get_future().wait();
    ::pthread_exit(nullptr);  // from whatever depth, without coming back here
  });
  holds.get_future().wait();
  EXPECT_TRUE(observer().status("a").held);
  end.set_value();
  worker.join();
  EXPECT_TRUE(becomes_free("a"));
  EXPECT_TRUE(manager.lock("a")->acquire({.wait = 30s}));
}

}  // namespace
}  // namespace dlock::contract
