// SPDX-License-Identifier: Apache-2.0
//
// Taking a lock with a token that is ours already: when it is done, and what shows that it must not
// be believed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/redis/rules/token_ranges.hpp"
#include "tests/simulation/redis/bench.hpp"

namespace dlock::simulation::redis {
namespace {

/// One that takes the lock and gives it back, and what its server is asked.
class SimulatedTokenRange : public testing::Test {
 protected:
  SimulatedTokenRange() {
    bench_.store.primary().on_served = [this](std::string_view what, std::size_t) {
      asked_.emplace_back(what);
    };
  }

  /// Its token; 0: it was not granted.
  std::uint64_t take(Program& program, Duration rest = milliseconds(20)) {
    asked_.clear();
    const auto attempt = program.acquire(kLock);
    bench_.run_until([&] { return attempt->told; });
    took_ = asked_;
    const auto token = attempt->handle.token().value_or(0);
    program.release();
    bench_.run(rest);
    return token;
  }
  std::uint64_t take() { return take(program_); }
  /// Its process stands still until the answer is too old, and it asks once more.
  void take_slowly() {
    program_.acquire(kLock);
    bench_.run(microseconds(1));
    program_.process.pause();
    bench_.run(production::kRangeLife);
    asked_.clear();
    program_.process.resume();
    bench_.run_until([&] { return program_.last->told; });
    EXPECT_TRUE(program_.last->held());
    EXPECT_EQ(std::count(asked_.begin(), asked_.end(), "acquire"), 1);
  }
  /// Until tokens are its own.
  void make_range() {
    for (int i = 0; i < 3; ++i) take();
    ASSERT_EQ(took_, kWithoutScript);
  }
  std::string fence() {
    const auto& server = bench_.store.primary();
    const auto* entry = bench_.store.primary().keys().find(kFence, server.now_ms());
    return entry != nullptr ? std::get<std::string>(entry->value) : std::string();
  }
  void put(const std::string& key, std::string text) {
    bench_.store.primary().keys().put(key, Entry{std::move(text), std::nullopt});
  }

  static constexpr auto kFence = "dlock:{orders/42}%fence";
  static constexpr auto kNext = "dlock:{orders/42}%next";
  const std::vector<std::string> kWithoutScript{"SET", "MGET"};
  const std::vector<std::string> kByScript{"acquire"};
  /// Somebody else was met: a script says what is.
  const std::vector<std::string> kBoth{"SET", "MGET", "acquire"};

  RedisBench bench_{true};
  Program& other_ = bench_.connected("b");
  Program& program_ = bench_.connected("a");
  std::vector<std::string> asked_;
  std::vector<std::string> took_;
};

TEST_F(SimulatedTokenRange, WhoIsAloneNeedsAScriptOnceInARange) {
  take();
  EXPECT_EQ(took_, kByScript);
  const auto now = bench_.store.primary().now_us();
  auto last = take();
  EXPECT_EQ(took_, kByScript) << "which brings the range";
  EXPECT_GT(std::stoll(fence()), now) << "up to the clock";
  for (int i = 0; i < 5; ++i) {
    const auto token = take();
    EXPECT_EQ(took_, kWithoutScript) << i;
    EXPECT_EQ(token, last + 1);
    last = token;
  }
}

// Who had the last one may have lost it with the fence: the next one is the clock's.
TEST_F(SimulatedTokenRange, TokensRiseThoughTheFenceIsLost) {
  for (int i = 0; i < 6; ++i) {
    const auto last = take();
    EXPECT_LE(std::stoll(fence()), bench_.store.primary().now_us());
    bench_.store.primary().keys().remove(kFence, bench_.store.primary().now_ms());
    const auto theirs = take(other_);
    EXPECT_GT(theirs, last);
    bench_.store.primary().keys().remove(kFence, bench_.store.primary().now_ms());
    EXPECT_GT(take(), theirs);
  }
}

// As an answer that is late below, with the range itself.
TEST_F(SimulatedTokenRange, ARangeThatComesLateIsNotBelieved) {
  take();
  take_slowly();
  EXPECT_EQ(std::to_string(program_.last->handle.token().value_or(0)), fence());
}

TEST_F(SimulatedTokenRange, WhatWasNotAskedForLatelyIsAskedForAnew) {
  make_range();
  bench_.run(production::kRangeLife);
  take();
  EXPECT_EQ(took_, kByScript);
}

TEST_F(SimulatedTokenRange, LastsForItsLifeHoweverOftenItIsUsed) {
  make_range();
  const auto end = bench_.world.now() + production::kRangeLife;
  int scripts = 0;
  while (bench_.world.now() < end) {
    take();
    if (took_ == kByScript) ++scripts;
  }
  EXPECT_EQ(scripts, 1);
}

// Its last answer would come too late.
TEST_F(SimulatedTokenRange, WhoTakesItAllTheTimeNeedsOneRequestEachTime) {
  make_range();
  const auto end = bench_.world.now() + 20 * production::kRangeLife;
  std::ptrdiff_t takes = 0;
  std::ptrdiff_t scripts = 0;
  std::ptrdiff_t tokens = 0;
  for (; bench_.world.now() < end; ++takes) {
    take(program_, Duration::zero());
    scripts += std::count(took_.begin(), took_.end(), "acquire");
    tokens += std::count(took_.begin(), took_.end(), "SET");
  }
  EXPECT_LE(scripts, 26);
  EXPECT_EQ(scripts + tokens, takes);
}

TEST_F(SimulatedTokenRange, AnothersGrantIsSeenInTheFence) {
  make_range();
  const auto theirs = take(other_);
  EXPECT_GT(take(), theirs);
  EXPECT_EQ(took_, kBoth);
  take();
  EXPECT_EQ(took_, kByScript) << "each time would cost a round trip";
  take();
  EXPECT_EQ(took_, kByScript) << "each time would cost a round trip";
}

TEST_F(SimulatedTokenRange, AnothersLockIsLeftAlone) {
  make_range();
  const auto theirs = other_.acquire(kLock);
  bench_.run_until([&] { return theirs->told; });
  const auto attempt = program_.acquire(kLock, milliseconds(0));
  bench_.run_until([&] { return attempt->told; });
  EXPECT_FALSE(attempt->held());
  EXPECT_TRUE(theirs->held());
  bench_.run(seconds(5));
  EXPECT_TRUE(theirs->held()) << "renewed";
}

TEST_F(SimulatedTokenRange, AFenceThatIsGoneIsNotTrusted) {
  make_range();
  const auto last = take();
  bench_.store.primary().keys().remove(kFence, bench_.store.primary().now_ms());
  EXPECT_GT(take(), last);
  EXPECT_EQ(took_, kBoth);
}

TEST_F(SimulatedTokenRange, WhoWasWokenComesFirst) {
  make_range();
  put(kNext, std::to_string(bench_.store.primary().now_ms() + 400) +
                 " 00000000-0000-4000-8000-000000000001 owner");
  const auto start = bench_.world.now();
  const auto attempt = program_.acquire(kLock);
  bench_.run_until([&] { return attempt->told; });
  EXPECT_TRUE(attempt->held());
  EXPECT_GE(attempt->at - start, milliseconds(350)) << "it has not let it pass";
}

TEST_F(SimulatedTokenRange, ForeignDataIsToldAsByAScript) {
  make_range();
  bench_.store.primary().keys().put(kKey, Entry{SortedSet{{"foreign", 1}}, std::nullopt});
  const auto attempt = program_.acquire(kLock);
  bench_.run_until([&] { return attempt->told; });
  EXPECT_NE(attempt->ec.message().find("another program"), std::string::npos)
      << attempt->ec.message();
}

TEST_F(SimulatedTokenRange, AWaiterEndsIt) {
  make_range();
  const auto held = program_.acquire(kLock);
  bench_.run_until([&] { return held->told; });
  const auto waits = other_.acquire(kLock);
  bench_.run(milliseconds(100));
  program_.release();
  bench_.run_until([&] { return waits->told; });
  asked_.clear();
  const auto again = program_.acquire(kLock);
  bench_.run(milliseconds(100));
  EXPECT_TRUE(waits->held());
  EXPECT_FALSE(again->told);
  EXPECT_EQ(std::count(asked_.begin(), asked_.end(), "SET"), 0);
}

// An answer is not believed after the range's life, counted from before it was asked for: a server
// that has forgotten what happened meanwhile may have given it.
TEST_F(SimulatedTokenRange, AnAnswerThatIsLateIsNotBelieved) {
  make_range();
  take_slowly();
  program_.release();
  bench_.run(milliseconds(20));
  take();
  EXPECT_EQ(took_, kByScript) << "which brings the next range: nobody was met";
  take();
  EXPECT_EQ(took_, kWithoutScript);
}

}  // namespace
}  // namespace dlock::simulation::redis
