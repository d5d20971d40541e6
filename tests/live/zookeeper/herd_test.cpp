// SPDX-License-Identifier: Apache-2.0
//
// Two hundred clients, each waiting behind another, each giving the lock back at a random moment:
// nobody may miss that the one before him has gone (F18).
//
// DLOCK_STRESS_CYCLES sets how many locks are taken in all (default 4000).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "dlock/async.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/live/zookeeper/support.hpp"

namespace dlock::testkit {
namespace {

constexpr std::size_t kClients = 200;
constexpr std::size_t kSessions = 8;
constexpr std::size_t kNames = 4;

long cycles() {
  const char* given = std::getenv("DLOCK_STRESS_CYCLES");
  return given == nullptr ? 4000 : std::atol(given);
}

struct Herd {
  std::atomic<long> left{cycles()};
  std::atomic<std::size_t> ended{0};
  std::array<std::atomic<int>, kNames> inside{};
  std::array<std::atomic<long>, kNames> grants{};
  std::atomic<int> overlaps{0};
  std::atomic<int> errors{0};
};

/// Wants, holds for a moment, gives back, and wants again; on the callback thread of its session.
class HerdClient : public std::enable_shared_from_this<HerdClient> {
 public:
  HerdClient(Herd& herd, LockManager& locks, std::size_t number)
      : herd_(herd), locks_(locks), dice_(static_cast<unsigned>(number)) {}

  void go() {
    if (herd_.left.fetch_sub(1) <= 0) {
      ++herd_.ended;
      return;
    }
    name_ = dice_() % kNames;
    locks_.lock("herd/" + std::to_string(name_))
        ->async_acquire({.wait = 120s}, [self = shared_from_this()](error_code ec, LockHandle got) {
          self->work(ec, std::move(got));
        });
  }

 private:
  void work(error_code ec, LockHandle got) {
    if (ec) {
      ++herd_.errors;
      go();
      return;
    }
    if (++herd_.inside.at(name_) != 1) ++herd_.overlaps;
    std::this_thread::sleep_for(std::chrono::microseconds(dice_() % 200));
    --herd_.inside.at(name_);
    ++herd_.grants.at(name_);
    async_release(got, [self = shared_from_this()](error_code) { self->go(); });
  }

  Herd& herd_;
  LockManager& locks_;
  std::mt19937 dice_;
  std::size_t name_ = 0;
};

TEST(ZooKeeperHerd, F18_NobodyMissesThatTheOneBeforeHimHasGone) {
  ZooKeeperServer server({.tick = 500ms});
  server.start();
  Herd herd;
  std::vector<LockManager> sessions;
  for (std::size_t i = 0; i < kSessions; ++i) {
    sessions.push_back(open_zookeeper(url_of({server.port()}, "/app?session_timeout=10s")));
    sessions.back().connect();
  }
  for (std::size_t i = 0; i < kClients; ++i) {
    std::make_shared<HerdClient>(herd, sessions.at(i % kSessions), i)->go();
  }
  const auto started = Clock::now();
  long seen = 0;
  Clock::duration longest{};
  // Somebody is granted something all the time.
  while (herd.ended < kClients) {
    const auto since = Clock::now();
    const auto total = [&] {
      long sum = 0;
      for (const auto& count : herd.grants) sum += count;
      return sum;
    };
    const bool goes_on =
        eventually(within(20s), [&] { return total() > seen || herd.ended == kClients; });
    longest = std::max(longest, Clock::now() - since);
    ASSERT_TRUE(goes_on) << "a stall after " << seen << " grants";
    seen = total();
  }
  std::printf("%ld grants in %.1f s, the longest pause %.0f ms\n", seen,
              std::chrono::duration<double>(Clock::now() - started).count(),
              std::chrono::duration<double, std::milli>(longest).count());
  EXPECT_EQ(herd.errors, 0) << "somebody waited for two minutes";
  EXPECT_EQ(herd.overlaps, 0);
  EXPECT_LT(longest, 5s);
  EXPECT_EQ(seen, cycles());
  EXPECT_EQ(watches_of_locks(server), 0);
}

}  // namespace
}  // namespace dlock::testkit
