// SPDX-License-Identifier: Apache-2.0
//
// A system without a thread to give, and without a descriptor: an error from the call, and all
// works again when there are some. Over the in-process store.
#include "testkit/no_threads.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <future>
#include <iterator>
#include <thread>

#include "core/loop/real_env.hpp"
#include "dlock/async.hpp"
#include "dlock/dlock.hpp"
#include "dlock/leader.hpp"
#include "dlock/memory.hpp"
#include "dlock/schedule.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/testing/store.hpp"
#include "testkit/await.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::NoThreads;
using testkit::patience;
using testkit::refuse_thread;
using Clock = std::chrono::steady_clock;

LockManager open_store(const std::string& name) {
  OpenOptions options;
  options.backends = {&memory::backend()};
  return LockManager::open("memory://no_threads_" + name, std::move(options));
}

void expect_threads_named(const LockError& error) {
  EXPECT_EQ(error.code(), errc::unavailable);
  EXPECT_NE(std::string(error.what()).find("RLIMIT_NPROC"), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("pids.max"), std::string::npos) << error.what();
}

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}
/// A sanitizer makes one of its own with the first of ours.
std::ptrdiff_t count_at_first() {
  pid_t one = 0;
  std::thread([&one] { one = ::gettid(); }).join();
  const auto folder = "/proc/self/task/" + std::to_string(one);
  while (std::filesystem::exists(folder)) std::this_thread::yield();
  return threads_of_this_process();
}
const auto threads_at_first = count_at_first();

/// The thread that stops leaders and scheduled runs rests for a second after the last one.
bool are_gone() {
  return eventually(patience(), [] { return threads_of_this_process() <= threads_at_first; });
}

TEST(NoThread, AtFirstUseIsAnErrorAndTheNextCallTriesAgain) {
  for (int refused = 0; refused < 3; ++refused) {  // all, the first, the second
    auto locks = open_store("first");
    {
      std::optional<NoThreads> none;
      if (refused == 0) none.emplace();
      if (refused > 0) refuse_thread(static_cast<std::uint64_t>(refused));
      const auto lock = locks.lock("a");
      try {
        (void)lock->acquire();
        ADD_FAILURE() << "acquired without threads";
      } catch (const LockError& error) {
        expect_threads_named(error);
      }
    }
    refuse_thread(0);
    EXPECT_TRUE(locks.lock("a")->try_acquire());
  }
}

TEST(NoThread, EachCallSaysSo) {
  auto locks = open_store("calls");
  const NoThreads none;
  EXPECT_THROW(locks.connect(), LockError);
  EXPECT_THROW(locks.inspect(), LockError);
  EXPECT_THROW(locks.list(), LockError);
  try {
    locks.status("a");
  } catch (const LockError& error) {
    expect_threads_named(error);
  }
  Mutex mutex(locks.lock("a"));
  EXPECT_THROW(mutex.lock(), LockError);
  EXPECT_THROW(mutex.try_lock(), LockError);
}

TEST(NoThread, AManagerThatNeverGotItsThreadsEnds) {
  auto locks = open_store("ends");
  refuse_thread(2);
  error_code ec;
  (void)locks.lock("a")->acquire({}, {}, ec);
  EXPECT_EQ(ec, errc::unavailable);
  refuse_thread(0);
}

// A run that is written down counts, also if it never began.
TEST(NoThread, AScheduledRunSaysSoAndIsDueStill) {
  ASSERT_TRUE(are_gone());
  auto locks = open_store("schedule");
  locks.connect();
  Schedule schedule(locks, "a", {.at_most_for = 10s, .every = 1h});
  {
    const NoThreads none;
    try {
      (void)schedule.try_begin();
      ADD_FAILURE() << "runs without a thread to end it in time";
    } catch (const LockError& error) {
      expect_threads_named(error);
    }
  }
  EXPECT_FALSE(Schedule::last(locks, "a"));
  EXPECT_TRUE(schedule.run([](const std::stop_token&) {}));
}

// Nothing would stop its work before the lease is over.
TEST(NoThread, WhoHasNoneToStopItsWorkDoesNotLeadAndStandsAgain) {
  ASSERT_TRUE(are_gone());
  testing::Store store;
  auto locks = store.open();
  auto others = store.open();
  auto held = others.lock("a")->acquire();
  std::atomic<int> retries = 0;
  std::atomic<bool> is_named = false;
  LeaderOptions options;
  options.times.retry = 10ms;
  options.on_event = [&](const LeaderEvent& event) {
    if (event.kind != LeaderEvent::Kind::retrying) return;
    is_named = event.text.find("RLIMIT_NPROC") != std::string::npos;
    ++retries;
  };
  Leader leader(locks, "a", {}, options);
  leader.campaign();
  ASSERT_TRUE(eventually(patience(), [&] { return others.status("a").waiting.size() == 1; }));
  std::optional<NoThreads> none;
  none.emplace();
  held.release();
  ASSERT_TRUE(eventually(patience(), [&] { return retries > 0; }));
  EXPECT_TRUE(is_named);
  EXPECT_FALSE(leader.is_leader());
  none.reset();
  EXPECT_TRUE(eventually(patience(), [&] { return leader.is_leader(); }));
}

TEST(NoThread, AnObserverSaysSoAndTheNextOneIsTold) {
  auto locks = open_store("observer");
  locks.connect();
  Leader looks(locks, "a", {});
  std::atomic<int> times = 0;
  const auto observer = [&times](const std::optional<Owner>&) { ++times; };
  {
    const NoThreads none;
    try {
      looks.on_leader_changed(observer);
      ADD_FAILURE() << "observes without a thread";
    } catch (const LockError& error) {
      expect_threads_named(error);
    }
  }
  looks.on_leader_changed(observer);
  EXPECT_TRUE(eventually(patience(), [&] { return times == 1; }));
}

TEST(NoThread, ACampaignSaysSoAndTheNextOneLeads) {
  auto locks = open_store("campaign");
  locks.connect();
  Leader leader(locks, "a", {});
  {
    const NoThreads none;
    try {
      leader.campaign();
      ADD_FAILURE() << "stands without a thread";
    } catch (const LockError& error) {
      expect_threads_named(error);
    }
  }
  leader.campaign();
  EXPECT_TRUE(eventually(patience(), [&] { return leader.is_leader(); }));
}

TEST(NoThread, ACompletionHandlerWaitsUntilThereIsOne) {
  auto locks = open_store("handler");
  locks.connect();
  std::optional<NoThreads> none;
  none.emplace();
  std::promise<error_code> told;
  auto got = told.get_future();
  locks.lock("a")->async_acquire([&](error_code ec, LockHandle) { told.set_value(ec); });
  EXPECT_EQ(got.wait_for(250ms), std::future_status::timeout);
  none.reset();
  ASSERT_EQ(got.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(got.get(), error_code());
}

TEST(NoThread, AnExecutorThatDoesNotTakeAHandlerEndsNothing) {
  auto locks = open_store("executor");
  locks.connect();
  std::optional<NoThreads> none;
  none.emplace();
  // The future's executor is Asio's, which makes its threads now.
  auto got = locks.lock("a")->async_acquire({}, asio::use_future);
  EXPECT_THROW(got.get(), std::future_error);
  none.reset();
  EXPECT_TRUE(locks.lock("a")->try_acquire({.wait = 10s}));
}

TEST(NoThread, ALossThatWaitsForACallbackIsToldWhenThereIsOne) {
  auto locks = open_store("loss");
  auto first = locks.lock("first")->acquire();
  auto second = locks.lock("second")->acquire();
  std::promise<void> begun;
  std::promise<void> end;
  first.on_state([&](HandleState, LossReason) {
    begun.set_value();
    end.get_future().wait();
  });
  std::optional<NoThreads> none;
  none.emplace();
  locks.evict("first", *first.token(), {.at_once = true});
  begun.get_future().wait();
  locks.evict("second", *second.token(), {.at_once = true});
  while (second.state() != HandleState::lost) std::this_thread::yield();
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(second.stop_token().stop_requested());
  none.reset();
  const auto until = Clock::now() + 10s;
  while (!second.stop_token().stop_requested() && Clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(second.stop_token().stop_requested());
  end.set_value();
}

TEST(NoThread, CloseKeepsItsBound) {
  auto locks = open_store("close");
  auto held = locks.lock("a")->acquire();
  std::promise<LossReason> told;
  held.on_state([&](HandleState, LossReason why) { told.set_value(why); });
  const NoThreads none;
  const auto before = Clock::now();
  locks.close();
  EXPECT_LT(Clock::now() - before, 10s);
  EXPECT_EQ(told.get_future().get(), LossReason::closed);
}

/// Runs the loop of an Env.
class Loop {
 public:
  explicit Loop(core::RealEnv& env) : env_(env) {}
  template <class Done>
  bool run_until(Done done) {
    const auto until = Clock::now() + 10s;
    env_.context().restart();
    while (!done() && Clock::now() < until) env_.context().run_one_for(20ms);
    return done();
  }

 private:
  core::RealEnv& env_;
};

TEST(NoThread, AHelpersJobWaitsUntilThereIsOne) {
  core::RealEnv env;
  bool done = false;
  {
    const NoThreads none;
    env.run_blocking([] {}, [&] { done = true; });
    EXPECT_FALSE(done);
  }
  EXPECT_TRUE(Loop(env).run_until([&] { return done; }));
}

TEST(NoThread, AHelpersJobIsDoneByTheOneThatHasEnded) {
  core::RealEnv env;
  std::promise<void> begun;
  std::promise<void> end;
  bool done = false;
  env.run_blocking(
      [&] {
        begun.set_value();
        end.get_future().wait();
      },
      [] {});
  begun.get_future().wait();
  const NoThreads none;
  env.run_blocking([] {}, [&] { done = true; });
  end.set_value();
  EXPECT_TRUE(Loop(env).run_until([&] { return done; }));
}

TEST(NoThread, AnEnvThatEndsDoesWhatIsLeftItself) {
  std::thread::id ran_on;
  const NoThreads none;
  {
    core::RealEnv env;
    env.run_blocking([&] { ran_on = std::this_thread::get_id(); }, [] {});
  }
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

/// While it lives, the process has no descriptor left.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    auto now = before_;
    const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(lowest);
    now.rlim_cur = static_cast<rlim_t>(lowest);
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(NoDescriptor, P05_OpenSaysSoAndWorksWhenThereIsOne) {
  {
    const NoDescriptors none;
    try {
      open_store("descriptors");
      ADD_FAILURE() << "opened without a descriptor";
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::unavailable);
      EXPECT_NE(std::string(error.what()).find("RLIMIT_NOFILE"), std::string::npos) << error.what();
    }
  }
  auto locks = open_store("descriptors");
  EXPECT_TRUE(locks.lock("a")->try_acquire());
  const NoDescriptors none;  // what is there goes on
  EXPECT_TRUE(locks.lock("a")->try_acquire());
}

}  // namespace
}  // namespace dlock
