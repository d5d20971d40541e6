// SPDX-License-Identifier: Apache-2.0
//
// Who is told when, and what user code may delay: callbacks, stop tokens, completion handlers, the
// log, close(). Over the in-process store, with the real threads.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <boost/asio/use_future.hpp>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>

#include "dlock/async.hpp"
#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

LockManager open_told(const std::string& name) {
  OpenOptions options;
  options.backends = {&memory::backend()};
  return LockManager::open("memory://telling_" + name, std::move(options));
}

void lose(LockManager& locks, const LockHandle& handle) {
  locks.evict(handle.name(), *handle.token(), {.at_once = true});
}

std::future<error_code> release_later(LockHandle& handle) {
  auto told = std::make_shared<std::promise<error_code>>();
  async_release(handle, [told](error_code ec) { told->set_value(ec); });
  return told->get_future();
}

/// User code that blocks. Shared with it: it may outlive the test.
class Block {
 public:
  void enter() {
    begun_.set_value();
    end_.wait();
  }
  void await_begin() { begun_.get_future().wait(); }
  void let_go() { let_go_.set_value(); }

 private:
  std::promise<void> begun_;
  std::promise<void> let_go_;
  std::shared_future<void> end_ = let_go_.get_future().share();
};

TEST(Telling, P01_ALossIsToldWhileOtherHandlesCallbacksBlock) {
  auto locks = open_told("p01");
  const auto block = std::make_shared<Block>();
  auto first = locks.lock("first")->acquire();
  first.on_state([block](HandleState, LossReason) { block->enter(); });
  auto second = locks.lock("second")->acquire();
  std::promise<void> told;
  std::promise<void> stopped;
  second.on_state([&](HandleState, LossReason) { told.set_value(); });
  const std::stop_callback on_stop(second.stop_token(), [&] { stopped.set_value(); });
  lose(locks, first);
  block->await_begin();
  lose(locks, second);
  EXPECT_EQ(stopped.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_EQ(told.get_future().wait_for(10s), std::future_status::ready);
  // Nor does a completion handler wait for it.
  auto third = locks.lock("third")->async_acquire({}, asio::use_future);
  EXPECT_EQ(third.wait_for(10s), std::future_status::ready);
  block->let_go();
}

TEST(Telling, ALossWaitsForNoCompletionHandler) {
  auto locks = open_told("handler");
  const auto block = std::make_shared<Block>();
  locks.lock("first")->async_acquire([block](error_code, LockHandle) { block->enter(); });
  block->await_begin();
  auto second = locks.lock("second")->acquire();
  lose(locks, second);
  while (!second.stop_token().stop_requested()) std::this_thread::yield();
  block->let_go();
}

TEST(Telling, P01_CloseKeepsItsBoundWhileACallbackBlocks) {
  const auto block = std::make_shared<Block>();
  const auto block_handler = std::make_shared<Block>();
  const auto begun_late = std::make_shared<std::atomic<bool>>(false);
  auto locks = LockManager::open("memory://telling_close?release_timeout=300ms",
                                 {.backends = {&memory::backend()}});
  auto held = locks.lock("a")->acquire();
  held.on_state([block](HandleState, LossReason) { block->enter(); });
  locks.lock("b")->async_acquire(
      [block_handler](error_code, LockHandle) { block_handler->enter(); });
  block_handler->await_begin();
  locks.lock("c")->async_acquire([begun_late](error_code, LockHandle) { *begun_late = true; });
  lose(locks, held);
  block->await_begin();
  const auto before = Clock::now();
  locks.close();
  EXPECT_LT(Clock::now() - before, 5s);
  block_handler->let_go();
  block->let_go();
  EXPECT_EQ(held.release(), errc::lock_lost);  // waits for the callback
  EXPECT_FALSE(*begun_late);
}

TEST(Telling, P02_ReleaseReturnsWhenTheCallbackThatRunsHasReturned) {
  auto locks = open_told("running");
  const auto block = std::make_shared<Block>();
  auto held = locks.lock("a")->acquire();
  std::atomic<bool> over = false;
  held.on_state([&, block](HandleState, LossReason) {
    block->enter();
    over = true;
  });
  lose(locks, held);
  block->await_begin();
  std::thread later([&] {
    std::this_thread::sleep_for(20ms);
    block->let_go();
  });
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_TRUE(over);
  later.join();
}

TEST(Telling, P02_AsyncReleaseCompletesWhenTheCallbackThatRunsHasReturned) {
  auto locks = open_told("async");
  const auto block = std::make_shared<Block>();
  auto held = locks.lock("a")->acquire();
  held.on_state([block](HandleState, LossReason) { block->enter(); });
  lose(locks, held);
  block->await_begin();
  auto released = release_later(held);
  EXPECT_EQ(released.wait_for(30ms), std::future_status::timeout);
  block->let_go();
  EXPECT_EQ(released.get(), errc::lock_lost);
}

TEST(Telling, InsideItsOwnCallbackAReleaseDoesNotWaitForIt) {
  auto locks = open_told("inside");
  auto held = locks.lock("a")->acquire();
  std::promise<error_code> told;
  held.on_state([&](HandleState, LossReason) {
    auto mine = std::move(held);
    release_later(mine).wait();
    told.set_value(mine.release());
  });
  lose(locks, held);
  EXPECT_EQ(told.get_future().get(), error_code());
}

TEST(Telling, AStopThatIsDueIsRequestedThoughTheHandleIsReleased) {
  auto locks = open_told("due");
  auto held = locks.lock("a")->acquire();
  const auto token = held.stop_token();
  lose(locks, held);
  while (held.state() != HandleState::lost) std::this_thread::yield();
  held.release();
  while (!token.stop_requested()) std::this_thread::yield();
}

TEST(Telling, ACallbackThatThrowsEndsNothing) {
  std::promise<std::string> logged;
  OpenOptions options;
  options.backends = {&memory::backend()};
  options.log_losses = false;
  options.log = [&](LogLevel, std::string_view text) { logged.set_value(std::string(text)); };
  auto locks = LockManager::open("memory://telling_throws", std::move(options));
  auto held = locks.lock("a")->acquire();
  std::promise<void> second;
  held.on_state([](HandleState, LossReason) { throw std::runtime_error("not mine"); });
  held.on_state([&](HandleState, LossReason) { second.set_value(); });
  lose(locks, held);
  EXPECT_EQ(logged.get_future().get(), "lock 'a': a state callback threw an exception: not mine");
  EXPECT_EQ(second.get_future().wait_for(10s), std::future_status::ready);
}

TEST(Telling, P11_SignalsAreLeftToTheApplication) {
  auto locks = open_told("signals");
  auto held = locks.lock("a")->acquire();
  std::promise<bool> blocked;
  held.on_state([&](HandleState, LossReason) {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    bool all = true;
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD, SIGPIPE}) {
      all = all && ::sigismember(&mask, number) == 1;
    }
    blocked.set_value(all);
  });
  lose(locks, held);
  EXPECT_TRUE(blocked.get_future().get());
}

TEST(Telling, AThreadThatIsCancelledInAnAcquireEndsAfterIt) {
  auto locks = open_told("cancel");
  const auto lock = locks.lock("a");
  auto held = lock->acquire();
  struct Shared {
    DistributedLock* lock;
    std::atomic<bool> returned = false;
  } shared{lock.get()};
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    auto& mine = *static_cast<Shared*>(argument);
    const auto got = mine.lock->acquire({.wait = 10s});
    mine.returned = true;
    while (true) ::pthread_testcancel();
  };
  ASSERT_EQ(::pthread_create(&thread, nullptr, run, &shared), 0);
  while (locks.status("a").waiting.empty()) std::this_thread::yield();
  ::pthread_cancel(thread);
  held.release();
  void* result = nullptr;
  ::pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(shared.returned);
  EXPECT_TRUE(lock->try_acquire({.wait = 10s}));  // its handle went with its stack
}

}  // namespace
}  // namespace dlock
