// SPDX-License-Identifier: Apache-2.0
//
// Whose thread runs the loop, with the threads held up wherever they look at the clock: between the
// look for work and the sleep, before and after the lead changes hands, in what runs on the loop.
// Each schedule has a seed, which says where and for how long; what the system's scheduler adds to
// it, nobody can repeat. DLOCK_SCHEDULES says how many there are (60), DLOCK_SCHEDULE the first.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include "core/loop/driving.hpp"
#include "core/loop/reply.hpp"

namespace {

/// What a thread does at its next points; 0: nothing.
thread_local std::uint64_t schedule = 0;

std::uint64_t next_choice() noexcept {
  schedule += 0x9E3779B97F4A7C15U;
  auto z = schedule;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

void rest(long nanoseconds) noexcept {
  timespec time{0, nanoseconds};
  ::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

/// Where a thread may be held up.
void point() noexcept {
  if (schedule == 0) return;
  const auto choice = next_choice();
  const auto how = choice % 4096;
  if (how == 0) return rest(2'500'000);  // longer than a nap of the loop's thread
  if (how < 40) return rest(static_cast<long>(1000 + (choice >> 32U) % 150'000));
  if (how < 1600) ::sched_yield();
}

}  // namespace

// In this program: each look at the clock is a point.
extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  point();
  return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
}

namespace dlock::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// One loop, its thread, and callers that come, lead, leave and give it work.
class Schedule {
 public:
  Schedule(std::uint64_t seed, bool callers_lead)
      : seed_(seed), driving_(std::make_shared<Driving>(env_, callers_lead)) {
    env_.serve(*driving_);
    loop_ = std::thread([this] {
      schedule = seed_ * 1000 + 1;
      driving_->run_here([](const char*) {});
      schedule = 0;
    });
  }
  ~Schedule() {
    driving_->stop();
    loop_.join();
  }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// False: some work was left lying.
  bool run() {
    const auto callers = 1 + seed_ % 3;
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < callers; ++i) {
      threads.emplace_back([this, i] {
        schedule = seed_ * 1000 + 10 + i;
        for (int step = 0; step < 8; ++step) act();
        if (seed_ % 6 == 0) leave_after_a_long_lead();
        schedule = 0;
        left_.fetch_add(1);
      });
    }
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    const auto is_over = [&] { return left_ == callers && done_ == asked_; };
    while (!is_over() && std::chrono::steady_clock::now() < end) rest(50'000);
    if (!is_over()) {
      std::fprintf(stderr, "schedule %llu: %d of %d pieces of work are done, %d of %d callers\n",
                   static_cast<unsigned long long>(seed_), done_.load(), asked_.load(),
                   left_.load(), static_cast<int>(callers));
      std::abort();  // nobody can end it any more
    }
    for (auto& thread : threads) thread.join();
    return is_alone_;
  }
  std::vector<Duration> lateness() {
    const std::lock_guard lock(mutex_);
    return late_;
  }

 private:
  /// What runs on the loop.
  template <class Work>
  auto job(Work work) {
    asked_.fetch_add(1);
    return [this, work = std::move(work)] {
      if (on_loop_.fetch_add(1) != 0) is_alone_ = false;
      point();
      work();
      on_loop_.fetch_sub(1);
      done_.fetch_add(1);
    };
  }
  void set_timer(Duration after, std::function<void()> then) {
    const auto due = BoottimeClock::now() + after;
    env_.call_at(due, job([this, due, then = std::move(then)] {
                   const std::lock_guard lock(mutex_);
                   late_.push_back(BoottimeClock::now() - due);
                   if (then) then();
                 }));
  }
  void wait_for(std::function<void(const std::shared_ptr<Reply<int>>&)> work) {
    const auto reply = std::make_shared<Reply<int>>();
    Driving::Intent intent;
    env_.post(job([reply, work = std::move(work)] { work(reply); }));
    point();
    reply->wait(intent);
  }
  void act() {
    switch (next_choice() % 8) {
      case 0:
      case 1:
        return wait_for([](const auto& reply) { reply->set(1); });
      case 2:  // the answer comes by a timer
        return wait_for([this](const auto& reply) {
          set_timer(milliseconds(next_choice() % 3), [reply] { reply->set(1); });
        });
      case 3:  // a timer is left to whoever leads then
        return wait_for([this](const auto& reply) {
          set_timer(std::chrono::microseconds(next_choice() % 3000), {});
          reply->set(1);
        });
      case 4: {  // an unlock that is not waited for
        Driving::Intent intent;
        env_.post(job([] {}));
        point();
        return intent.push();
      }
      case 5: {  // forgotten
        Driving::Intent intent;
        env_.post(job([] {}));
        return point();
      }
      case 6:  // from elsewhere
        driving_->on_work();
        return env_.post(job([] {}));
      default:  // what is posted on the loop
        return wait_for([this](const auto& reply) {
          env_.post(job([] {}));
          set_timer(milliseconds(1), [reply] { reply->set(1); });
        });
    }
  }
  /// For so long that the loop's thread has fallen asleep for good, and with a timer pending.
  void leave_after_a_long_lead() {
    const auto me = std::this_thread::get_id();
    std::atomic<bool> leads = false;
    for (int i = 0; i < 100 && !leads; ++i) {
      wait_for([&leads, me](const auto& reply) {
        leads = std::this_thread::get_id() == me;
        reply->set(1);
      });
    }
    wait_for([this](const auto& reply) {
      set_timer(milliseconds(90), {});
      set_timer(milliseconds(80), [reply] { reply->set(1); });
    });
  }

  const std::uint64_t seed_;
  const std::shared_ptr<Driving> driving_;
  RealEnv env_;
  std::thread loop_;
  std::atomic<int> asked_ = 0;
  std::atomic<int> done_ = 0;
  std::atomic<unsigned> left_ = 0;
  std::atomic<int> on_loop_ = 0;
  std::atomic<bool> is_alone_ = true;  ///< two never ran it at once
  std::mutex mutex_;
  std::vector<Duration> late_;
};

/// Of the timers of many schedules, the earliest first.
using Lateness = std::vector<Duration>;

double us(const Lateness& late, double part) {
  const auto at = static_cast<std::size_t>(part * static_cast<double>(late.size() - 1));
  return std::chrono::duration<double, std::micro>(late.at(at)).count();
}

void print(const char* who, const Lateness& late) {
  std::printf("%s: %zu timers, late by p50 %.0f us, p99 %.0f us, worst %.0f us\n", who, late.size(),
              us(late, 0.5), us(late, 0.99), us(late, 1));
}

TEST(DrivingSchedules, NothingIsLeftLyingOrLaterWhoeverLeads) {
  const auto first = number_of("DLOCK_SCHEDULE", 1);
  const auto schedules = number_of("DLOCK_SCHEDULES", 60);
  std::array<Lateness, 2> late;
  for (auto seed = first; seed < first + schedules; ++seed) {
    for (const bool callers_lead : {false, true}) {
      Schedule one(seed, callers_lead);
      ASSERT_TRUE(one.run()) << "schedule " << seed << ": the loop ran on two threads at once";
      const auto more = one.lateness();
      auto& all = late.at(callers_lead ? 1 : 0);
      all.insert(all.end(), more.begin(), more.end());
    }
  }
  for (auto& all : late) {
    std::sort(all.begin(), all.end());
    ASSERT_FALSE(all.empty());
  }
  print("the loop's thread alone", late[0]);
  print("callers lead", late[1]);
  // A nap, and what a busy machine does to either.
  EXPECT_LT(us(late[1], 0.5), 2 * us(late[0], 0.5) + 5'000);
}

}  // namespace
}  // namespace dlock::core
