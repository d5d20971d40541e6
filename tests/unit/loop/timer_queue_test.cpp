// SPDX-License-Identifier: Apache-2.0
#include "core/loop/timer_queue.hpp"

#include <gtest/gtest.h>

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

TEST(TimerQueue, AMovedTimerIsDueAtItsNewMoment) {
  TimerQueue queue;
  std::string order;
  const auto spare = queue.add(kNever, [&] { order += 's'; });
  queue.add(at(2), [&] { order += 'a'; });
  EXPECT_FALSE(queue.take_due(at(1)));
  queue.move(spare, at(1));
  queue.move(0, at(1));
  EXPECT_EQ(queue.next(), at(1));
  while (auto job = queue.take_due(at(2))) job();
  EXPECT_EQ(order, "sa");
  queue.move(spare, at(1));
  EXPECT_EQ(queue.next(), kNever);
}

TEST(TimerQueue, AnIdNamesNoLaterTimer) {
  TimerQueue queue;
  int calls = 0;
  const auto first = queue.add(at(1), [] { FAIL(); });
  queue.remove(first);
  const auto second = queue.add(at(2), [&] { ++calls; });
  EXPECT_NE(first, second);
  queue.remove(first);
  queue.move(first, at(9));
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
