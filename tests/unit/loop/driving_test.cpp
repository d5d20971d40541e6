// SPDX-License-Identifier: Apache-2.0
//
// Whose thread runs the loop, and that somebody always does.
#include "core/loop/driving.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <future>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/loop/reply.hpp"

namespace dlock::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class DrivingTest : public testing::Test {
 protected:
  explicit DrivingTest(bool callers_lead = true)
      : driving_(std::make_shared<Driving>(env_, callers_lead)) {
    env_.serve(*driving_);
    loop_ = std::thread([this] {
      driving_->run_here([this](const char* what) {
        const std::lock_guard lock(mutex_);
        told_.emplace_back(what);
      });
    });
  }
  ~DrivingTest() override {
    driving_->stop();
    loop_.join();
  }

  /// A blocking call whose answer needs `job` to be run, and what that comes to.
  template <class T>
  T call(std::function<T()> job) {
    const auto reply = std::make_shared<Reply<T>>();
    Driving::Intent intent;
    env_.post([reply, job = std::move(job)] { reply->set(job()); });
    return reply->wait(intent);
  }
  std::thread::id thread_of_a_call() {
    return call<std::thread::id>([] { return std::this_thread::get_id(); });
  }
  /// Calls until one has run here: then the next one may.
  bool leads_itself() {
    const auto end = Clock::now() + seconds(20);
    while (Clock::now() < end) {
      if (thread_of_a_call() == std::this_thread::get_id()) return true;
    }
    return false;
  }
  /// For longer than the loop's thread naps: it leads again.
  void await_timer() {
    std::atomic<bool> rung = false;
    call<int>([&] {
      env_.call_at(BoottimeClock::now() + milliseconds(2), [&] { rung = true; });
      return 0;
    });
    EXPECT_TRUE(eventually(rung));
  }
  bool ever_leads(int calls) {
    for (int i = 0; i < calls; ++i) {
      if (thread_of_a_call() == std::this_thread::get_id()) return true;
    }
    return false;
  }
  static bool eventually(const std::atomic<bool>& done) {
    const auto end = Clock::now() + seconds(20);
    while (!done && Clock::now() < end) std::this_thread::yield();
    return done;
  }

  const std::shared_ptr<Driving> driving_;
  RealEnv env_;
  std::mutex mutex_;
  std::vector<std::string> told_;
  std::thread loop_;
};

TEST_F(DrivingTest, TheFirstCallIsServedByTheLoopsThread) {
  EXPECT_EQ(thread_of_a_call(), loop_.get_id());
}

TEST_F(DrivingTest, CallsOneAfterTheOtherRunOnTheCallersThread) { EXPECT_TRUE(leads_itself()); }

TEST_F(DrivingTest, AfterACallerTheLoopsThreadLeadsAgain) {
  ASSERT_TRUE(leads_itself());
  // Nobody posts: a timer that was set on the loop comes all the same, and not long after its time.
  std::atomic<bool> done = false;
  std::thread::id at;
  Clock::duration late{};
  call<int>([&] {
    const auto due = Clock::now() + milliseconds(30);
    env_.call_at(BoottimeClock::now() + milliseconds(30), [&, due] {
      late = Clock::now() - due;
      at = std::this_thread::get_id();
      done = true;
    });
    return 0;
  });
  ASSERT_TRUE(eventually(done));
  EXPECT_EQ(at, loop_.get_id());
  EXPECT_LT(late, milliseconds(500));
}

TEST_F(DrivingTest, ACallerWhoWaitsLongRunsTimersAndWhatComesFromElsewhere) {
  ASSERT_TRUE(leads_itself());
  const auto me = std::this_thread::get_id();
  std::atomic<bool> waits = false;
  std::thread::id posted;
  std::thread elsewhere([&] {
    EXPECT_TRUE(eventually(waits));
    env_.post([&] { posted = std::this_thread::get_id(); });
  });
  const auto reply = std::make_shared<Reply<int>>();
  std::thread::id by;
  {
    Driving::Intent intent;
    env_.post([&] {
      by = std::this_thread::get_id();
      waits = true;
      env_.call_at(BoottimeClock::now() + milliseconds(100), [reply] { reply->set(1); });
    });
    EXPECT_EQ(reply->wait(intent), 1);
  }
  elsewhere.join();
  call<int>([] { return 0; });
  if (by == me) {  // it led, else the machine was too slow
    EXPECT_EQ(posted, me);
  }
}

TEST_F(DrivingTest, WhoComesWhileAnotherWaitsIsServed) {
  ASSERT_TRUE(leads_itself());
  const auto reply = std::make_shared<Reply<int>>();
  std::atomic<bool> waits = false;
  std::thread first([&] {
    ASSERT_TRUE(leads_itself());
    Driving::Intent intent;
    env_.post([&waits] { waits = true; });
    EXPECT_EQ(reply->wait(intent), 7);
  });
  ASSERT_TRUE(eventually(waits));
  // The first one waits for long, and may have the loop until somebody else wants something.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(call<int>([i] { return i; }), i);
  call<int>([reply] {
    reply->set(7);
    return 0;
  });
  first.join();
}

TEST_F(DrivingTest, WorkThatNobodyWaitsForIsRunAfterACallerHasLeft) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(leads_itself());
    std::atomic<bool> done = false;
    std::thread([&] { env_.post([&] { done = true; }); }).join();
    ASSERT_TRUE(eventually(done)) << i;
  }
}

TEST_F(DrivingTest, AnIntentThatIsForgottenWakesTheLoopsThread) {
  ASSERT_TRUE(leads_itself());
  std::atomic<bool> done = false;
  {
    const Driving::Intent intent;
    env_.post([&] { done = true; });
  }
  EXPECT_TRUE(eventually(done));
}

TEST_F(DrivingTest, AnUnlockIsRunByWhoUnlocksIfNobodyLeads) {
  const auto me = std::this_thread::get_id();
  bool by_me = false;
  for (int i = 0; i < 1000 && !by_me; ++i) {
    ASSERT_TRUE(leads_itself());
    std::atomic<bool> done = false;
    Driving::Intent intent;
    env_.post([&] {
      by_me = std::this_thread::get_id() == me;
      done = true;
    });
    intent.push();
    ASSERT_TRUE(eventually(done));
  }
  EXPECT_TRUE(by_me);
}

TEST_F(DrivingTest, TwoCallersAreServedByTheLoopsThread) {
  std::atomic<int> ready = 0;
  std::atomic<int> by_loop = 0;
  std::atomic<int> by_callers = 0;
  const auto work = [&] {
    ++ready;
    while (ready < 2) std::this_thread::yield();
    for (int i = 0; i < 5000; ++i) {
      const auto at = call<std::thread::id>([] { return std::this_thread::get_id(); });
      ++(at == loop_.get_id() ? by_loop : by_callers);
    }
  };
  std::thread one(work);
  std::thread two(work);
  one.join();
  two.join();
  EXPECT_EQ(by_loop + by_callers, 10'000);
  EXPECT_GT(by_loop, 0);
}

class OwnThreadOnly : public DrivingTest {
 protected:
  OwnThreadOnly() : DrivingTest(false) {}
};

TEST_F(OwnThreadOnly, NoCallerLeads) { EXPECT_FALSE(ever_leads(2000)); }

TEST_F(DrivingTest, AThreadOfLowerPriorityNeverLeads) {
  std::thread([&] {
    ASSERT_EQ(::setpriority(PRIO_PROCESS, 0, 5), 0);
    EXPECT_FALSE(ever_leads(2000));
  }).join();
}

void* run_function(void* function) {
  (*static_cast<std::function<void()>*>(function))();
  return nullptr;
}

TEST_F(DrivingTest, AThreadWithASmallStackNeverLeads) {
  pthread_attr_t attributes;
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, std::size_t{192} * 1024), 0);
  std::function<void()> work = [&] { EXPECT_FALSE(ever_leads(2000)); };
  pthread_t thread{};
  ASSERT_EQ(::pthread_create(&thread, &attributes, &run_function, &work), 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
}

TEST_F(DrivingTest, WhatAHandlerThrowsIsToldAndTheLoopGoesOn) {
  ASSERT_TRUE(leads_itself());
  env_.post([] { throw std::runtime_error("first"); });
  env_.post([] { throw 2; });
  call<int>([] { return 0; });
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(told_, (std::vector<std::string>{"first", "an exception of an unknown type"}));
}

TEST_F(DrivingTest, TheEndWaitsForTheCallerWhoLeads) {
  ASSERT_TRUE(leads_itself());
  const auto reply = std::make_shared<Reply<int>>();
  std::atomic<bool> waits = false;
  std::thread caller([&] {
    for (int i = 0; i < 100; ++i) thread_of_a_call();
    Driving::Intent intent;
    env_.post([&waits] { waits = true; });
    EXPECT_EQ(reply->wait(intent), 3);
  });
  ASSERT_TRUE(eventually(waits));
  env_.post([reply] { reply->set(3); });
  driving_->stop();
  // Whatever was not run any more.
  if (!reply->is_over()) reply->set(3);
  caller.join();
}

// Callers, posts and unlocks from everywhere, so that who leads changes at any moment: each job is
// run, one at a time, and each caller has its answer.
TEST_F(DrivingTest, NothingIsForgottenAndNothingRunsTwiceAtOnce) {
  std::uint64_t unguarded = 0;  // the loop's: a race is ThreadSanitizer's
  std::atomic<std::uint64_t> posted = 0;
  const auto work = [&](unsigned seed) {
    std::minstd_rand random(seed);
    for (int i = 0; i < 3000; ++i) {
      ++posted;
      switch (random() % 4) {
        case 0:
          env_.post([&] { ++unguarded; });
          break;
        case 1: {
          Driving::Intent intent;
          env_.post([&] { ++unguarded; });
          intent.push();
          break;
        }
        case 2:
          call<int>([&] {
            ++unguarded;
            return 0;
          });
          break;
        default: {
          const auto reply = std::make_shared<Reply<int>>();
          Driving::Intent intent;
          env_.post([&, reply] {
            env_.call_at(BoottimeClock::now() + std::chrono::microseconds(100), [&, reply] {
              ++unguarded;
              reply->set(0);
            });
          });
          reply->wait(intent);
        }
      }
      if (random() % 64 == 0) await_timer();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(call<std::uint64_t>([&] { return unguarded; }), posted);
}

TEST(RealEnv, ItsEndDoesNotWaitForAnUnboundedJob) {
  struct Stuck {
    std::promise<void> begun, may_end, ended;
  };
  const auto job = std::make_shared<Stuck>();
  const auto owned_by_done = std::make_shared<int>();
  {
    RealEnv env;
    env.run_unbounded(
        [job] {
          job->begun.set_value();
          job->may_end.get_future().wait();
          job->ended.set_value();
        },
        [owned_by_done] { FAIL(); });
    job->begun.get_future().wait();
    EXPECT_EQ(owned_by_done.use_count(), 2);
  }
  EXPECT_EQ(owned_by_done.use_count(), 1);
  job->may_end.set_value();
  job->ended.get_future().wait();
}

TEST(RealEnv, AnUnboundedJobThatEndsIsReportedOnTheLoop) {
  RealEnv env;
  bool has_run = false;
  bool is_done = false;
  env.run_unbounded([&] { has_run = true; }, [&] { is_done = has_run; });
  const auto until = Clock::now() + seconds(10);
  while (!is_done && Clock::now() < until) env.context().run_one_for(milliseconds(20));
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace dlock::core
