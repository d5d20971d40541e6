// SPDX-License-Identifier: Apache-2.0
//
// Whose thread runs the loop, and that somebody always does.
#include "core/loop/driving.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <functional>
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
  /// Timers are the leader's, also where another runs what it has posted.
  std::thread::id leader_during_a_call() {
    const auto reply = std::make_shared<Reply<std::thread::id>>();
    Driving::Intent intent;
    env_.post([this, reply] {
      env_.call_at(BoottimeClock::now(), [reply] { reply->set(std::this_thread::get_id()); });
    });
    return reply->wait(intent);
  }
  static bool is_here_in_time(const std::function<std::thread::id()>& call) {
    const auto end = Clock::now() + seconds(20);
    while (Clock::now() < end) {
      if (call() == std::this_thread::get_id()) return true;
    }
    return false;
  }
  /// Calls until this thread has led: then the next one may.
  bool leads_itself() {
    return is_here_in_time([this] { return leader_during_a_call(); });
  }
  bool runs_itself() {
    return is_here_in_time([this] { return thread_of_a_call(); });
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
  /// As long as two wait the loop's thread leads, and who runs something himself is a visitor.
  void while_two_wait(const std::function<void()>& body) {
    const std::array replies{std::make_shared<Reply<int>>(), std::make_shared<Reply<int>>()};
    std::array<std::atomic<bool>, 2> there{};
    const auto wait = [&](std::size_t who) {
      Driving::Intent intent;
      env_.post([&there, who] { there.at(who) = true; });
      replies.at(who)->wait(intent);
    };
    std::thread first(wait, 0);
    std::thread second(wait, 1);
    for (const auto& one : there) EXPECT_TRUE(eventually(one));
    body();
    for (const auto& reply : replies) env_.post([reply] { reply->set(0); });
    first.join();
    second.join();
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
  EXPECT_EQ(leader_during_a_call(), loop_.get_id());
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
      waits = true;
      env_.call_at(BoottimeClock::now() + milliseconds(100), [&by, reply] {
        by = std::this_thread::get_id();
        reply->set(1);
      });
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
    for (int i = 0; i < 1000; ++i) {
      ++(leader_during_a_call() == loop_.get_id() ? by_loop : by_callers);
    }
  };
  std::thread one(work);
  std::thread two(work);
  one.join();
  two.join();
  EXPECT_EQ(by_loop + by_callers, 2000);
  EXPECT_GT(by_loop, 0);
}

TEST_F(DrivingTest, WhileTheLoopsThreadSleepsACallerRunsWhatItHasPosted) {
  while_two_wait([this] { EXPECT_TRUE(runs_itself()); });
}

TEST_F(DrivingTest, ATimerThatAVisitorHasSetIsTheLoopsThreads) {
  while_two_wait([this] {
    const auto me = std::this_thread::get_id();
    bool by_me = false;
    for (int i = 0; i < 1000 && !by_me; ++i) {
      const auto due = BoottimeClock::now() + milliseconds(5);
      std::atomic<bool> rung = false;
      std::thread::id at;
      Duration late{};
      by_me = call<bool>([&] {
        env_.call_at(due, [&] {
          late = BoottimeClock::now() - due;
          at = std::this_thread::get_id();
          rung = true;
        });
        return std::this_thread::get_id() == me;
      });
      ASSERT_TRUE(eventually(rung));
      EXPECT_EQ(at, loop_.get_id());
      EXPECT_LT(late, milliseconds(500));
    }
    EXPECT_TRUE(by_me);
  });
}

TEST_F(DrivingTest, WhatAVisitorsJobThrowsIsToldAndItsCallIsServed) {
  while_two_wait([this] {
    for (int i = 0; i < 100; ++i) {
      const auto reply = std::make_shared<Reply<int>>();
      Driving::Intent intent;
      env_.post([] { throw std::runtime_error("a job's"); });
      env_.post([reply, i] { reply->set(i); });
      EXPECT_EQ(reply->wait(intent), i);
    }
  });
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(told_, std::vector<std::string>(100, "a job's"));
}

TEST_F(DrivingTest, TheEndWaitsForAVisitor) {
  std::atomic<bool> is_inside = false;
  std::atomic<bool> has_ended = false;
  bool was_early = false;
  std::thread visitor([&] {
    const auto me = std::this_thread::get_id();
    while_two_wait([&] {
      const auto visit = [&] {
        if (std::this_thread::get_id() != me) return false;
        is_inside = true;
        for (int i = 0; i < 20'000; ++i) std::this_thread::yield();
        was_early = has_ended;
        return true;
      };
      while (!call<bool>(visit)) {
      }
    });
  });
  ASSERT_TRUE(eventually(is_inside));
  driving_->stop();
  has_ended = true;
  std::atomic<bool> has_left = false;
  std::thread watch([&] {
    visitor.join();
    has_left = true;
  });
  // By what the visitor posts, which nobody else runs any more, the two are let go.
  const auto end = Clock::now() + seconds(20);
  while (!has_left && Clock::now() < end) env_.run_posted();
  watch.join();
  EXPECT_FALSE(was_early);
}

class OwnThreadOnly : public DrivingTest {
 protected:
  OwnThreadOnly() : DrivingTest(false) {}
};

TEST_F(OwnThreadOnly, NoCallerLeads) { EXPECT_FALSE(ever_leads(2000)); }

TEST_F(OwnThreadOnly, NoCallerVisits) {
  while_two_wait([this] { EXPECT_FALSE(ever_leads(2000)); });
}

TEST_F(DrivingTest, AThreadOfLowerPriorityNeverVisits) {
  while_two_wait([this] {
    std::thread([&] {
      ASSERT_EQ(::setpriority(PRIO_PROCESS, 0, 5), 0);
      EXPECT_FALSE(ever_leads(2000));
    }).join();
  });
}

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

}  // namespace
}  // namespace dlock::core
