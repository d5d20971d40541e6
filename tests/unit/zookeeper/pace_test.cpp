// SPDX-License-Identifier: Apache-2.0
//
// How often servers are tried, and how many requests are under way at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backends/zookeeper/wire/gate.hpp"
#include "backends/zookeeper/wire/redial.hpp"
#include "tests/support/virtual_env.hpp"

namespace dlock::zookeeper {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart{std::chrono::hours(1)};

/// Tries from `now` on, each as soon as it may be, for so long.
std::size_t tries(Redial& redial, TimePoint now, Duration length) {
  std::size_t count = 0;
  for (const auto end = now + length;; ++count) {
    now = std::max(now, redial.next());
    if (now >= end) return count;
    redial.tried(now);
  }
}

TEST(Redial, AGoodLinkThatBreaksIsTriedAtOnceAndThenQuickly) {
  Redial redial(10s, 1, kStart);
  redial.tried(kStart);
  const auto lost = kStart + 1min;
  redial.missing(lost);
  EXPECT_LE(redial.next(), lost);
  EXPECT_GE(tries(redial, lost, 1s), 6U);
}

/// Returns the first `count` tries, in milliseconds from the start.
std::vector<std::int64_t> schedule(Redial redial, std::size_t count) {
  std::vector<std::int64_t> all;
  for (auto now = kStart; all.size() < count;) {
    now = std::max(now, redial.next());
    all.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now - kStart).count());
    redial.tried(now);
  }
  return all;
}

TEST(Redial, APauseEqualsTheTimeWithoutALink) {
  using Times = std::vector<std::int64_t>;
  EXPECT_EQ(schedule(Redial(8s, 1, kStart), 10),
            (Times{0, 20, 40, 80, 160, 320, 640, 1600, 3200, 4800}));
  EXPECT_EQ(schedule(Redial(1600ms, 1, kStart), 9),
            (Times{0, 20, 40, 80, 160, 320, 520, 1600, 3200}));
  EXPECT_EQ(schedule(Redial(100ms, 1, kStart), 6), (Times{0, 20, 40, 80, 130, 180}));
  EXPECT_EQ(schedule(Redial(8s, 3, kStart), 10), (Times{0, 0, 0, 20, 20, 20, 40, 40, 40, 80}));
  EXPECT_EQ(schedule(Redial(8s, 1, kStart, 2s), 4), (Times{0, 2000, 4000, 6000}));
  EXPECT_EQ(schedule(Redial(8s, 2, kStart, 2s), 5), (Times{0, 0, 2000, 2000, 4000}));
  // Tries of other clients count: seven of 1.6 s are free.
  const auto spent = std::make_shared<TimePoint>(kStart + 16s);
  EXPECT_EQ(schedule(Redial(8s, 1, kStart, {}, spent), 3), (Times{0, 8000, 9600}));
}

TEST(Redial, OverTimeNoServerIsTriedMoreThanOnceASecond) {
  for (const auto session : {300ms, 2000ms, 10'000ms, 60'000ms}) {
    for (const std::size_t servers : {1U, 3U, 5U}) {
      Redial redial(session, servers, kStart);
      EXPECT_LE(tries(redial, kStart, 20s), 20 * servers) << session.count() << " ms";
      EXPECT_GE(tries(redial, kStart + 20s, 100s), 50U) << "it goes on";
    }
  }
}

// A server that lets us in and hangs up: success must not begin anew with quick tries.
TEST(Redial, ALinkThatIsLostAtOnceIsATryLikeAnyOther) {
  Redial redial(2s, 1, kStart);
  std::size_t count = 0;
  for (auto now = kStart; now < kStart + 60s; ++count) {
    now = std::max(now, redial.next());
    redial.tried(now);
    now += 1ms;
    redial.missing(now);
  }
  EXPECT_LE(count, 50U);
}

// A server that lets everybody in, and whose sessions end at once: each new one has its first try
// when it comes, and no quick ones after it.
TEST(Redial, ANewSessionsTriesAreCountedWithTheOldOnes) {
  const auto spent = std::make_shared<TimePoint>();
  std::size_t count = 0;
  for (auto now = kStart; now < kStart + 60s;) {
    const auto end = now + 4s;
    Redial redial(2s, 1, now, {}, spent);
    EXPECT_LE(redial.next(), now) << "the first is not held up";
    count += tries(redial, now, 4s);
    now = end;
  }
  EXPECT_LE(count, 50U);
}

TEST(Redial, AllServersOfAListComeBeforeThePause) {
  Redial redial(10s, 3, kStart);
  redial.missing(kStart);
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(redial.next(), kStart);
    redial.tried(kStart);
  }
  EXPECT_GT(redial.next(), kStart);
}

TEST(Redial, AShortSessionIsTriedBeforeItEnds) {
  Redial redial(1s, 1, kStart);
  redial.tried(kStart);
  redial.missing(kStart + 20s);
  EXPECT_GE(tries(redial, kStart + 20s, 500ms), 5U);
}

TEST(Gate, LetsInInTurnAndTheUrgentFirst) {
  tests::VirtualEnv env;
  Signal signal(env);
  Gate gate(1);
  auto first = std::make_unique<Gate::Pass>(gate, false, signal);
  auto second = std::make_unique<Gate::Pass>(gate, false, signal);
  auto gone = std::make_unique<Gate::Pass>(gate, false, signal);
  auto third = std::make_unique<Gate::Pass>(gate, false, signal);
  auto urgent = std::make_unique<Gate::Pass>(gate, true, signal);
  EXPECT_TRUE(first->inside());
  EXPECT_EQ(gate.waiting(), 4U);
  first.reset();
  EXPECT_TRUE(urgent->inside());
  EXPECT_FALSE(second->inside());
  gone.reset();
  urgent.reset();
  EXPECT_TRUE(second->inside());
  second.reset();
  EXPECT_TRUE(third->inside());
  EXPECT_EQ(gate.waiting(), 0U);
}

}  // namespace
}  // namespace dlock::zookeeper
