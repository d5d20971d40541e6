// SPDX-License-Identifier: Apache-2.0
//
// The facade with its real threads, over the in-process store: who runs what where, what closing
// and fork() do. What every store must do as well is in tests/contract.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "core/loop/driving.hpp"
#include "dlock/async.hpp"
#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

OpenOptions memory_only() {
  OpenOptions options;
  options.backends = {&memory::backend()};
  return options;
}

LockManager open_store(const std::string& name) {
  return LockManager::open("memory://" + name, memory_only());
}

TEST(Engine, AcquireReleaseAndTryAcquire) {
  auto locks = open_store("basic");
  const auto lock = locks.lock("a");
  auto held = lock->acquire();
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_EQ(held.name(), "a");
  EXPECT_TRUE(held.token());
  EXPECT_FALSE(held.remaining());  // no lease
  EXPECT_NO_THROW(held.check());
  EXPECT_FALSE(lock->try_acquire());
  EXPECT_FALSE(lock->try_acquire({.wait = 20ms}));
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(held);
  EXPECT_TRUE(lock->try_acquire());
}

/// The loop of the manager that was made last.
Env* last_env = nullptr;

/// Whether what is posted beside a lone caller's locks and unlocks ever runs on his thread.
bool runs_the_loop_itself(bool may) {
  BackendDescriptor watched = memory::backend();
  watched.create = [](const StoreOptions& of_store, Env& env, EventSink& sink) {
    last_env = &env;
    return memory::backend().create(of_store, env, sink);
  };
  OpenOptions options;
  options.backends = {&watched};
  options.io_on_calling_threads = may;
  auto locks = LockManager::open("memory://calling-threads", options);
  const auto lock = locks.lock("a");
  for (int i = 0; i < 3000; ++i) {
    EXPECT_FALSE(lock->acquire().release());
    const auto ran = std::make_shared<std::promise<std::thread::id>>();
    core::Driving::Intent intent;
    last_env->post([ran] { ran->set_value(std::this_thread::get_id()); });
    intent.push();
    if (ran->get_future().get() == std::this_thread::get_id()) return true;
  }
  return false;
}

TEST(Engine, ALoneCallerRunsTheLoopItselfUnlessTheOptionSaysOtherwise) {
  EXPECT_TRUE(runs_the_loop_itself(true));
  EXPECT_FALSE(runs_the_loop_itself(false));
}

TEST(Engine, AWaitThatRanOutIsATimeoutWithTheLocksName) {
  auto locks = open_store("timeout");
  const auto lock = locks.lock("orders/42");
  const auto held = lock->acquire();
  try {
    (void)lock->acquire({.wait = 10ms});
    FAIL() << "acquired twice";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::timed_out);
    EXPECT_EQ(error.lock(), "orders/42");
    EXPECT_EQ(error.store(), "default");
  }
}

TEST(Engine, AStopTokenEndsAWait) {
  auto locks = open_store("stop");
  const auto lock = locks.lock("a");
  const auto held = lock->acquire();
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    error_code ec;
    (void)lock->acquire({}, stop.get_token(), ec);
    return ec;
  });
  while (locks.status("a").waiting.empty()) std::this_thread::yield();
  stop.request_stop();
  EXPECT_EQ(waiting.get(), errc::cancelled);
  while (!locks.status("a").waiting.empty()) std::this_thread::yield();
}

TEST(Engine, AStopThatWasRequestedBeforeEndsItToo) {
  auto locks = open_store("stopped");
  const auto lock = locks.lock("a");
  const auto held = lock->acquire();
  std::stop_source stop;
  stop.request_stop();
  error_code ec;
  (void)lock->acquire({}, stop.get_token(), ec);
  EXPECT_EQ(ec, errc::cancelled);
}

TEST(Engine, AHandleThatIsDroppedIsReleased) {
  auto locks = open_store("dropped");
  const auto lock = locks.lock("a");
  { const auto held = lock->acquire(); }
  EXPECT_TRUE(lock->acquire({.wait = 5s}));
}

TEST(Engine, ClosingTellsHoldersAndWaitersAndLaterCallers) {
  auto locks = open_store("closing");
  const auto lock = locks.lock("a");
  auto held = lock->acquire();
  std::promise<LossReason> told;
  held.on_state([&](HandleState state, LossReason why) {
    if (state == HandleState::lost) told.set_value(why);
  });
  auto waiting = std::async(std::launch::async, [&] {
    error_code ec;
    (void)lock->acquire({}, {}, ec);
    return ec;
  });
  while (locks.status("a").waiting.empty()) std::this_thread::yield();
  locks.close();
  EXPECT_EQ(told.get_future().get(), LossReason::closed);
  EXPECT_EQ(waiting.get(), errc::closed);
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.release(), errc::lock_lost);
  error_code ec;
  (void)lock->acquire({}, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_THROW(locks.status("a"), LockError);
  // The store itself has nothing of it left.
  auto again = open_store("closing");
  EXPECT_TRUE(again.lock("a")->try_acquire());
}

TEST(Engine, HandleAndLockMayOutliveTheManager) {
  std::shared_ptr<DistributedLock> lock;
  LockHandle held;
  {
    auto locks = open_store("outlive");
    lock = locks.lock("a");
    held = lock->acquire();
  }
  EXPECT_EQ(held.state(), HandleState::lost);
  EXPECT_EQ(held.loss_reason(), LossReason::closed);
}

TEST(Engine, F17_CallbacksMayBlockAndTakeLocks) {
  auto locks = open_store("callbacks");
  auto first = locks.lock("first")->acquire();
  const auto second = locks.lock("second");
  std::promise<bool> done;
  std::thread::id callback_thread;
  first.on_state([&](HandleState, LossReason) {
    callback_thread = std::this_thread::get_id();
    auto inner = second->acquire({.wait = 5s});
    done.set_value(static_cast<bool>(inner));
  });
  locks.evict("first", *first.token(), {.at_once = true});
  EXPECT_TRUE(done.get_future().get());
  EXPECT_NE(callback_thread, std::this_thread::get_id());
  EXPECT_EQ(first.loss_reason(), LossReason::broken);
  EXPECT_EQ(first.release(), errc::lock_lost);
}

// Nobody suspends a machine in a test; but the kernel says which clock a timer is on. (Asio has one
// of its own on another clock, which nothing here is ever set by.)
TEST(Engine, F26_TimersAreOnTheClockThatCountsSuspend) {
  auto locks = open_store("boottime");
  const auto held = locks.lock("a")->acquire();
  EXPECT_FALSE(locks.lock("a")->try_acquire({.wait = 10ms}));
  int timers = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);) {
      if (line.starts_with("clockid:") && std::stoi(line.substr(8)) == CLOCK_BOOTTIME) ++timers;
    }
  }
  EXPECT_GE(timers, 1);
}

TEST(Engine, AManagerMayBeDestroyedByItsOwnCallback) {
  auto locks = std::make_unique<LockManager>(open_store("self"));
  auto held = locks->lock("a")->acquire();
  std::promise<void> done;
  held.on_state([&](HandleState, LossReason) {
    locks.reset();
    done.set_value();
  });
  open_store("self").evict("a", *held.token(), {.at_once = true});
  EXPECT_EQ(done.get_future().wait_for(10s), std::future_status::ready);
}

TEST(Engine, AsyncAcquireWithAFuture) {
  auto locks = open_store("future");
  const auto lock = locks.lock("a");
  auto future = lock->async_acquire({.wait = 5s}, asio::use_future);
  auto held = future.get();
  EXPECT_EQ(held.state(), HandleState::held);
  async_release(held, asio::use_future).get();
  EXPECT_TRUE(lock->try_acquire());
}

asio::awaitable<std::uint64_t> in_a_coroutine(std::shared_ptr<DistributedLock> lock) {
  auto held = co_await lock->async_acquire({.wait = 5s}, asio::use_awaitable);
  const auto token = held.token().value_or(0);
  co_await async_release(held, asio::use_awaitable);
  co_return token;
}

TEST(Engine, AsyncAcquireInACoroutineOnTheUsersExecutor) {
  auto locks = open_store("coroutine");
  asio::io_context io;
  std::uint64_t token = 0;
  asio::co_spawn(io, in_a_coroutine(locks.lock("a")),
                 [&](const std::exception_ptr& error, std::uint64_t got) {
                   EXPECT_FALSE(error);
                   token = got;
                 });
  io.run();
  EXPECT_GT(token, 0U);
}

TEST(Engine, ACancellationSlotEndsAnAsyncAcquire) {
  auto locks = open_store("slot");
  const auto lock = locks.lock("a");
  const auto held = lock->acquire();
  asio::cancellation_signal signal;
  std::promise<error_code> told;
  lock->async_acquire(
      {}, asio::bind_cancellation_slot(signal.slot(),
                                       [&](error_code ec, LockHandle) { told.set_value(ec); }));
  while (locks.status("a").waiting.empty()) std::this_thread::yield();
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_EQ(told.get_future().get(), errc::cancelled);
}

TEST(Engine, AHandlerNeverRunsInsideTheInitiatingCall) {
  auto locks = open_store("initiating");
  const auto lock = locks.lock("a");
  for (int i = 0; i < 100; ++i) {
    std::promise<std::thread::id> ran_on;
    lock->async_acquire(
        [&](error_code, LockHandle) { ran_on.set_value(std::this_thread::get_id()); });
    EXPECT_NE(ran_on.get_future().get(), std::this_thread::get_id());
  }
}

TEST(Engine, MutexIsReentrantPerThreadAndExcludesOthers) {
  auto locks = open_store("mutex");
  Mutex mutex(locks.lock("a"));
  Mutex same(locks.lock("a"));
  std::scoped_lock outer(mutex);
  ASSERT_TRUE(same.try_lock());
  EXPECT_EQ(mutex.held()->token(), same.held()->token());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  same.unlock();
  std::thread([&] { EXPECT_FALSE(mutex.try_lock_for(5ms)); }).join();
  EXPECT_TRUE(mutex.held());
}

TEST(Engine, UnlockByAThreadThatDoesNotOwnItIsABug) {
  auto locks = open_store("unlock");
  Mutex mutex(locks.lock("a"));
  mutex.lock();
  std::thread([&] {
    try {
      mutex.unlock();
      ADD_FAILURE() << "unlocked another thread's mutex";
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::operation_not_permitted);
    }
  }).join();
  mutex.unlock();
  EXPECT_THROW(mutex.unlock(), LockError);
}

TEST(Engine, ALostMutexIsNotReentered) {
  auto locks = open_store("lost");
  Mutex mutex(locks.lock("a"));
  mutex.lock();
  locks.evict("a", *mutex.held()->token(), {.at_once = true});
  while (mutex.held()->state() != HandleState::lost) std::this_thread::yield();
  try {
    mutex.lock();
    FAIL() << "re-entered a lost lock";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::lock_lost);
  }
  EXPECT_NO_THROW(mutex.unlock());
  mutex.lock();  // anew
  EXPECT_EQ(mutex.held()->state(), HandleState::held);
  mutex.unlock();
}

TEST(Engine, MutexWorksWithAConditionVariable) {
  auto locks = open_store("condition");
  Mutex mutex(locks.lock("a"));
  std::condition_variable_any changed;
  bool ready = false;
  std::thread other([&] {
    const std::scoped_lock guard(mutex);
    ready = true;
    changed.notify_one();
  });
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, 10s, [&] { return ready; }));
  }
  other.join();
}

TEST(Engine, SixteenThreadsThroughOneMutexLoseNothing) {
  auto locks = open_store("threads");
  Mutex mutex(locks.lock("counter"));
  int counter = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        const std::scoped_lock guard(mutex);
        const int read = counter;
        std::this_thread::yield();
        counter = read + 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 16 * 50);
}

#if defined(__cpp_lib_source_location)  // else synchronized() takes a name
struct Service {
  static std::string work(LockManager& locks) {
    return synchronized(
        locks, [&] { return synchronized(locks, [&] { return locks.list().at(0).name; }); });
  }
};

TEST(Engine, SynchronizedIsNamedAfterItsCallerAndNests) {
  auto locks = open_store("synchronized");
  // Nested lambdas have no name of their own, so the inner call must pass one.
  EXPECT_THROW(Service::work(locks), LockError);
  const auto name = synchronized(locks, "billing", [&] {
    return synchronized(locks, "billing", [&] { return locks.list().at(0).name; });
  });
  EXPECT_EQ(name, "billing");
  EXPECT_TRUE(locks.list().empty());
}
#endif

int exit_status_of(const std::function<bool()>& in_child) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(in_child() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Engine, AForkedChildIsToldClosedAndTheParentGoesOn) {  // F73
  auto locks = std::make_unique<LockManager>(open_store("fork"));
  auto lock = locks->lock("a");
  auto held = lock->acquire();
  Mutex mutex(locks->lock("b"));
  mutex.lock();
  EXPECT_EQ(exit_status_of([&] {
              error_code ec;
              (void)lock->acquire({}, {}, ec);
              bool ok = ec == errc::closed;
              ok = ok && held.state() == HandleState::lost;
              ok = ok && held.loss_reason() == LossReason::closed;
              held.on_state([](HandleState, LossReason) {});
              ok = ok && held.release() == errc::closed;
              mutex.unlock();
              try {
                mutex.lock();
                ok = false;
              } catch (const LockError& error) {
                ok = ok && error.code() == errc::closed;
              }
              try {
                locks->status("a");
                ok = false;
              } catch (const LockError& error) {
                ok = ok && error.code() == errc::closed;
              }
              lock.reset();
              locks.reset();
              return ok;
            }),
            0);
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
  mutex.unlock();
  EXPECT_TRUE(lock->try_acquire());
}

TEST(Engine, AManagerThatWasOpenedBeforeAForkWorksInTheChild) {
  auto locks = open_store("prefork");
  EXPECT_EQ(exit_status_of([&] {
              Mutex mutex(locks.lock("a"));
              const std::scoped_lock guard(mutex);
              return mutex.held()->state() == HandleState::held;
            }),
            0);
  EXPECT_TRUE(locks.lock("a")->try_acquire());
}

TEST(Engine, BadNamesAndUnroutedNamesAreRefused) {
  auto locks = open_store("names");
  for (const std::string bad : {"", "/a", "a/", "a//b", ".", "a/../b", "a\nb", "\xff"}) {
    try {
      locks.lock(bad);
      ADD_FAILURE() << "accepted '" << bad << "'";
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::invalid_name);
    }
  }
}

}  // namespace
}  // namespace dlock
