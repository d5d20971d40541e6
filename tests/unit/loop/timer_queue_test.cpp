// SPDX-License-Identifier: Apache-2.0
#include "core/loop/timer_queue.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace dlock::core {
namespace {

TimePoint at(int seconds) { return TimePoint(std::chrono::seconds(seconds)); }

TEST(TimerQueue, GivesDueJobsInOrder) {
  TimerQueue queue;
  std::string order;
  queue.add(at(2), [&] { order += 'b'; });
  queue.add(at(1), [&] { order += 'a'; });
  queue.add(at(2), [&] { order += 'c'; });
  queue.add(at(9), [&] { order += 'z'; });
  EXPECT_EQ(queue.next(), at(1));
  while (auto job = queue.take_due(at(2))) job();
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(queue.next(), at(9));
}

TEST(TimerQueue, ARemovedTimerIsGone) {
  TimerQueue queue;
  const auto id = queue.add(at(1), [] { FAIL(); });
  queue.remove(id);
  queue.remove(id);
  queue.remove(0);
  EXPECT_EQ(queue.next(), kNever);
  EXPECT_FALSE(queue.take_due(at(5)));
}

/// The same timers, in a container that is known to keep them in order.
class TimersBeside {
 public:
  void add(int number) {
    const auto when = at(some(50));
    ids_[number] = queue_.add(when, [this, number] { ran_ = number; });
    places_[number] = order_.emplace(when, number);
  }
  void remove(int number) {
    queue_.remove(ids_.at(number));
    order_.erase(places_.at(number));
    places_.erase(number);
  }
  /// The earliest; what the queue ran in its place is told.
  void run() {
    const auto [when, number] = *order_.begin();
    EXPECT_EQ(queue_.next(), when);
    EXPECT_FALSE(queue_.take_due(when - std::chrono::nanoseconds(1)));
    queue_.take_due(when)();
    EXPECT_EQ(ran_, number);
    order_.erase(order_.begin());
    places_.erase(number);
  }
  bool has(int number) const { return places_.count(number) != 0; }
  bool empty() const { return order_.empty(); }
  int some(int end) { return std::uniform_int_distribution<>(0, end - 1)(random_); }

 private:
  TimerQueue queue_;
  std::multimap<TimePoint, int> order_;
  std::map<int, std::multimap<TimePoint, int>::iterator> places_;
  std::map<int, TimerId> ids_;
  int ran_ = -1;
  std::mt19937 random_{1};
};

TEST(TimerQueue, KeepsAnyTimersInOrder) {
  TimersBeside timers;
  for (int step = 0; step < 20'000; ++step) {
    const auto number = timers.some(200);
    if (!timers.has(number)) {
      timers.add(number);
    } else if (timers.some(2) == 0) {
      timers.remove(number);
    } else {
      timers.run();
    }
    if (testing::Test::HasFailure()) return;
  }
  while (!timers.empty()) timers.run();
}

TEST(TimerQueue, AnIdNamesNoLaterTimer) {
  TimerQueue queue;
  int calls = 0;
  const auto first = queue.add(at(1), [] { FAIL(); });
  queue.remove(first);
  const auto second = queue.add(at(2), [&] { ++calls; });
  EXPECT_NE(first, second);
  queue.remove(first);
  EXPECT_EQ(queue.next(), at(2));
  queue.take_due(at(2))();
  queue.remove(second);
  EXPECT_EQ(calls, 1);
}

TEST(FunctionQueue, GivesFunctionsInTheirOrder) {
  detail::FunctionQueue<void()> queue;
  std::string order;
  EXPECT_FALSE(queue.pop());
  queue.push([&] { order += 'a'; });
  queue.push([&] { order += 'b'; });
  queue.pop()();
  queue.push([&] { order += 'c'; });
  queue.pop()();
  queue.pop()();
  EXPECT_TRUE(queue.empty());
  queue.push([&] { order += 'd'; });
  EXPECT_FALSE(queue.empty());
  queue.pop()();
  EXPECT_EQ(order, "abcd");
  queue.push([] { FAIL(); });
}

}  // namespace
}  // namespace dlock::core
