// SPDX-License-Identifier: Apache-2.0
//
// With `fair=true` nobody overtakes whoever waits, seen from the server's queue.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/simulation/redis/bench.hpp"

namespace dlock::simulation::redis {
namespace {

constexpr int kPrograms = 8;

/// The time in a field of `%alive`, `v=1 until=MS kind=KIND`.
std::int64_t until_ms(const std::string& text) {
  return std::stoll(text.substr(std::string("v=1 until=").size()));
}

/// Looks before each command of the server who has got the lock since, and who was first in line.
class TurnLog {
 public:
  explicit TurnLog(RedisBench& bench)
      : bench_(bench), before_(bench.store.primary().before_command) {
    bench.store.primary().before_command = [this] {
      before_();
      look();
    };
  }
  ~TurnLog() { bench_.store.primary().before_command = before_; }
  TurnLog(const TurnLog&) = delete;
  TurnLog& operator=(const TurnLog&) = delete;

  int grants() const noexcept { return grants_; }
  int overtaken() const noexcept { return overtaken_; }

 private:
  void look() {
    auto& server = bench_.store.primary();
    const auto now = server.now_ms();
    std::string owner;
    if (const auto* lock = server.keys().find(kKey, now)) {
      owner = std::get<std::string>(lock->value);
      owner = owner.substr(owner.find(':') + 1);
    }
    if (owner != owner_ && !owner.empty()) {
      ++grants_;
      if (!line_.empty() && line_.front().substr(37) != owner) ++overtaken_;
    }
    owner_ = owner;
    line_ = line(now);
  }

  /// Who waits, by arrival: `process owner`, each. Who was woken is out of the queue, and the
  /// first.
  std::vector<std::string> line(std::int64_t now) const {
    auto& keys = bench_.store.primary().keys();
    const auto* queue = keys.find(std::string(kKey) + "%queue", now);
    const auto* alive = keys.find(std::string(kKey) + "%alive", now);
    if (queue == nullptr || alive == nullptr) return {};
    const auto& alive_until = std::get<Hash>(alive->value);
    std::vector<std::pair<double, std::string>> waiting;
    for (const auto& [waiter, arrival] : std::get<SortedSet>(queue->value)) {
      const auto found = alive_until.find(waiter);
      if (found != alive_until.end() && until_ms(found->second) > now) {
        waiting.emplace_back(arrival, waiter);
      }
    }
    std::sort(waiting.begin(), waiting.end());
    std::vector<std::string> names;
    if (const auto* woken = keys.find(std::string(kKey) + "%next", now)) {
      const auto& text = std::get<std::string>(woken->value);
      names.push_back(text.substr(text.find(' ') + 1));
    }
    for (const auto& [arrival, waiter] : waiting) names.push_back(waiter);
    return names;
  }

  RedisBench& bench_;
  const std::function<void()> before_;
  std::string owner_;
  std::vector<std::string> line_;
  int grants_ = 0;
  int overtaken_ = 0;
};

struct Turns {
  int grants = 0;
  int overtaken = 0;
};

/// Programs take the lock again and again; each fiftieth time it is taken away from its holder, and
/// is free without a release.
Turns many_turns(bool fair, int grants) {
  RedisBench bench(true, 7);
  bench.store.fair = fair;
  std::vector<Program*> programs;
  std::vector<AttemptPtr> attempts(kPrograms);
  for (int i = 0; i < kPrograms; ++i) programs.push_back(&bench.connected("p" + std::to_string(i)));
  TurnLog log(bench);
  int released = 0;
  const auto end = bench.world.now() + seconds(60);
  while (log.grants() < grants && bench.world.now() < end) {
    for (int i = 0; i < kPrograms; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (attempts[at] && !attempts[at]->told) continue;
      if (attempts[at] && attempts[at]->held() && ++released % 50 == 0) {
        bench.store.strike(Fault::deleted, programs[at]->process, kLock);
      }
      if (attempts[at]) programs[at]->release(attempts[at]);
      attempts[at] = programs[at]->acquire(kLock);
    }
    bench.run(microseconds(200));
  }
  return {log.grants(), log.overtaken()};
}

TEST(SimRedisFair, TwoThousandGrantsAreInTheOrderOfArrival) {
  const auto turns = many_turns(true, 2000);
  EXPECT_GE(turns.grants, 2000);
  EXPECT_EQ(turns.overtaken, 0);
}

TEST(SimRedisFair, WithoutItSomebodyIsOvertaken) {
  const auto turns = many_turns(false, 500);
  EXPECT_GE(turns.grants, 500);
  EXPECT_GT(turns.overtaken, 0);
}

}  // namespace
}  // namespace dlock::simulation::redis
