// SPDX-License-Identifier: Apache-2.0
//
// The asynchronous twins, with each kind of completion token; and threads that do not grow.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <future>

#include "dlock/async.hpp"
#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

namespace asio = boost::asio;

class AsyncContract : public Contract {};
DLOCK_CONTRACT(AsyncContract);

std::ptrdiff_t threads_now() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::distance(begin(all), end(all));
}

TEST_P(AsyncContract, UseFuture) {
  auto manager = open();
  const auto lock = manager.lock("a");
  auto held = lock->async_acquire(asio::use_future).get();
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(open().lock("a")->try_acquire());
  AcquireOptions options;
  options.wait = 100ms;
  auto busy = lock->async_acquire(options, asio::use_future);
  EXPECT_THROW(busy.get(), boost::system::system_error);
  async_release(held, asio::use_future).get();
  EXPECT_TRUE(becomes_free("a"));
}

asio::awaitable<int> count_with(std::shared_ptr<DistributedLock> lock, int rounds, int* number) {
  for (int i = 0; i < rounds; ++i) {
    auto held = co_await lock->async_acquire({.wait = 60s}, asio::use_awaitable);
    const int read = *number;
    co_await asio::post(asio::use_awaitable);
    *number = read + 1;
    co_await async_release(held, asio::use_awaitable);
  }
  co_return rounds;
}

TEST_P(AsyncContract, UseAwaitable) {
  constexpr int kCoroutines = 10;
  constexpr int kRounds = 10;
  auto manager = open();
  asio::io_context loop;
  int number = 0;
  int done = 0;
  for (int i = 0; i < kCoroutines; ++i) {
    asio::co_spawn(loop, count_with(manager.lock("a"), kRounds, &number),
                   [&done](const std::exception_ptr& error, int rounds) {
                     EXPECT_FALSE(error);
                     done += rounds;
                   });
  }
  loop.run();
  EXPECT_EQ(done, kCoroutines * kRounds);
  EXPECT_EQ(number, kCoroutines * kRounds) << "coroutines of one thread exclude each other";
}

asio::awaitable<error_code> expect_busy(std::shared_ptr<DistributedLock> lock) {
  AcquireOptions options;
  options.wait = 50ms;
  auto [ec, held] = co_await lock->async_acquire(options, asio::as_tuple(asio::use_awaitable));
  EXPECT_FALSE(held);
  co_return ec;
}

TEST_P(AsyncContract, ExpectedFailuresAsATuple) {
  auto manager = open();
  const auto held = manager.lock("a")->acquire();
  asio::io_context loop;
  auto result = asio::co_spawn(loop, expect_busy(manager.lock("a")), asio::use_future);
  loop.run();
  EXPECT_EQ(result.get(), errc::timed_out);
}

TEST_P(AsyncContract, Callbacks) {
  auto manager = open();
  const auto caller = std::this_thread::get_id();
  std::promise<std::thread::id> called;
  LockHandle held;
  manager.lock("a")->async_acquire([&](error_code ec, LockHandle got) {
    EXPECT_FALSE(ec) << ec.message();
    held = std::move(got);
    called.set_value(std::this_thread::get_id());
  });
  EXPECT_NE(called.get_future().get(), caller);
  std::promise<error_code> released;
  async_release(held, [&](error_code ec) { released.set_value(ec); });
  EXPECT_FALSE(held) << "emptied at once";
  EXPECT_FALSE(released.get_future().get());
}

TEST_P(AsyncContract, HandlersRunOnTheirExecutor) {
  auto manager = open();
  asio::io_context loop;
  bool called = false;
  manager.lock("a")->async_acquire(
      asio::bind_executor(loop, [&](error_code ec, const LockHandle& held) {
        EXPECT_FALSE(ec);
        EXPECT_TRUE(held);
        EXPECT_TRUE(loop.get_executor().running_in_this_thread());
        called = true;
      }));
  EXPECT_FALSE(called) << "never inside the initiating call";
  loop.run();
  EXPECT_TRUE(called);
}

TEST_P(AsyncContract, CancellationSlots) {
  auto manager = open();
  const auto other = peer("a");
  ASSERT_TRUE(other->wait_held(patience()));
  asio::cancellation_signal cancel;
  std::promise<error_code> ended;
  manager.lock("a")->async_acquire(
      asio::bind_cancellation_slot(cancel.slot(), [&](error_code ec, const LockHandle& held) {
        EXPECT_FALSE(held);
        ended.set_value(ec);
      }));
  ASSERT_TRUE(waiters_become("a", 1));
  cancel.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(ended.get_future().get(), errc::cancelled);
  EXPECT_TRUE(waiters_become("a", 0));
}

// Under the sanitizers, on a busy machine, each of a thousand who look at a thousand would take
// longer than a session: the holder would be lost, and say so.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kMostWaiters = 200;
#else
constexpr std::size_t kMostWaiters = 100'000;
#endif

TEST_P(AsyncContract, ThreadsDoNotGrowWithWaiters) {
  auto manager = open();
  manager.connect();
  auto held = manager.lock("a")->acquire();
  const auto many = std::min(harness().many_waiters(), kMostWaiters);
  std::vector<std::future<LockHandle>> waiters;
  const auto wait_for_lock = [&](std::size_t count) {
    while (waiters.size() < count) {
      waiters.push_back(manager.lock("a")->async_acquire(asio::use_future));
    }
    return waiters_become("a", count);
  };
  ASSERT_TRUE(wait_for_lock(1));
  // The test's own, two managers of three (a store may have one), a sanitizer's, and the futures'.
  // One that writes the log ends when it has been idle.
  const auto most = 9 + 2 * static_cast<std::ptrdiff_t>(std::thread::hardware_concurrency());
  EXPECT_TRUE(eventually(within(10s), [&] { return threads_now() <= most; })) << threads_now();
  const auto at_one = threads_now();
  ASSERT_TRUE(wait_for_lock(100));
  // What lasts is counted: a thread that helps for a moment (a disk, a close) is none.
  const auto no_more = [&] { return threads_now() <= at_one; };
  EXPECT_TRUE(eventually(within(10s), no_more)) << threads_now() << " instead of " << at_one;
  for (std::size_t count = 200; count < many; count += 100) {
    ASSERT_TRUE(wait_for_lock(count))
        << waiting("a") << " instead of " << count << ", the holder is " << to_string(held.state());
  }
  // A store may name fewer than a thousand in one status.
  while (waiters.size() < many) {
    waiters.push_back(manager.lock("a")->async_acquire(asio::use_future));
  }
  ASSERT_TRUE(eventually(patience(), [&] { return waiting("a") > many - 10; }));
  EXPECT_TRUE(eventually(within(10s), no_more)) << threads_now() << " instead of " << at_one;
  // All are served, one after the other.
  EXPECT_FALSE(held.release());
  for (auto& waiter : waiters) EXPECT_FALSE(waiter.get().release());
}

TEST_P(AsyncContract, ThreadsDoNotGrowWithLocks) {
  auto manager = open();
  std::vector<LockHandle> held;
  held.push_back(manager.lock("n/0")->acquire());
  const auto before = threads_now();
  for (int i = 1; i < 200; ++i) {
    held.push_back(manager.lock("n/" + std::to_string(i))->acquire());
  }
  EXPECT_TRUE(eventually(within(10s), [&] { return threads_now() <= before; })) << threads_now();
}

asio::awaitable<error_code> step_down(LockHandle* held) {
  auto [ec] = co_await async_downgrade(*held, asio::as_tuple(asio::use_awaitable));
  co_return ec;
}

TEST_P(AsyncContract, DowngradeWithAFutureAndAnAwaitable) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  if (!capabilities().shared_mode) {
    asio::io_context context;
    auto refused = asio::co_spawn(context, step_down(&held), asio::use_future);
    context.run();
    EXPECT_EQ(refused.get(), errc::not_supported);
    EXPECT_EQ(held.mode(), Mode::exclusive);
    return;
  }
  const auto token = held.token();
  async_downgrade(held, asio::use_future).get();
  EXPECT_EQ(held.mode(), Mode::shared);
  EXPECT_EQ(held.token(), token);
  auto other = open();
  auto reader = other.lock("a")->acquire({.wait = 30s, .mode = Mode::shared});
  EXPECT_FALSE(other.lock("a")->try_acquire()) << "a writer waits";
  asio::io_context context;
  auto again = asio::co_spawn(context, step_down(&held), asio::use_future);
  context.run();
  EXPECT_FALSE(again.get()) << "it is one already";
  LockHandle empty;
  std::promise<error_code> told;
  async_downgrade(empty, [&](error_code ec) { told.set_value(ec); });
  EXPECT_EQ(told.get_future().get(), errc::lock_lost);
  EXPECT_FALSE(reader.release());
}

}  // namespace
}  // namespace dlock::contract
