// SPDX-License-Identifier: Apache-2.0
//
// Readers and writers come one after the other, again and again, and none is served before one who
// was there earlier. DLOCK_TEST_GRANTS=2000 makes it so long.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "dlock/async.hpp"
#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class SharedOrderContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    if (!HasFatalFailure() && !capabilities().shared_mode) GTEST_SKIP() << "it has no shared mode";
  }
};
DLOCK_CONTRACT(SharedOrderContract);

std::size_t grants_asked_for() {
  const char* const text = std::getenv("DLOCK_TEST_GRANTS");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? 40 : std::strtoull(text, nullptr, 10);
}

/// Who has come, in that order, and who of them has been served. Thread-safe.
class Line {
 public:
  /// Of three one after the other one is a writer: behind whoever reads, somebody waits.
  std::pair<std::size_t, Mode> come(bool to_read) {
    const std::lock_guard lock(mutex_);
    readers_ = to_read && readers_ < 2 ? readers_ + 1 : 0;
    const auto mode = readers_ > 0 ? Mode::shared : Mode::exclusive;
    all_.push_back({mode, Step::waits, {}});
    return {all_.size() - 1, mode};
  }
  void granted(std::size_t who, LockHandle handle) {
    const std::lock_guard lock(mutex_);
    for (std::size_t earlier = 0; earlier < who; ++earlier) {
      if (is_passed(all_[earlier], all_[who])) ++inversions_;
    }
    all_[who].step = Step::holds;
    all_[who].handle = std::move(handle);
    ++grants_;
  }
  std::size_t grants() const {
    const std::lock_guard lock(mutex_);
    return grants_;
  }
  std::size_t waiting() const { return count(Step::waits); }
  bool is_held() const { return count(Step::holds) > 0; }
  std::size_t inversions() const {
    const std::lock_guard lock(mutex_);
    return inversions_;
  }
  /// Those who hold it give it back.
  void release() {
    std::vector<LockHandle> ended;
    {
      const std::lock_guard lock(mutex_);
      for (auto& one : all_) {
        if (one.step != Step::holds) continue;
        one.step = Step::gone;
        ended.push_back(std::move(one.handle));
      }
    }
    for (auto& one : ended) EXPECT_FALSE(one.release());
  }

 private:
  enum class Step : std::uint8_t { waits, holds, gone };
  struct Arrival {
    Mode mode;
    Step step;
    LockHandle handle;
  };
  std::size_t count(Step step) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(
        all_.begin(), all_.end(), [step](const Arrival& one) { return one.step == step; }));
  }
  /// Readers that come in together are told in any order.
  static bool is_passed(const Arrival& earlier, const Arrival& later) {
    if (earlier.step == Step::gone) return false;
    return earlier.mode == Mode::exclusive || later.mode == Mode::exclusive;
  }

  mutable std::mutex mutex_;
  std::deque<Arrival> all_;
  int readers_ = 0;  // the last ones
  std::size_t grants_ = 0;
  std::size_t inversions_ = 0;
};

TEST_P(SharedOrderContract, NobodyIsServedBeforeWhoCameEarlier) {
  constexpr std::size_t kInLine = 6;
  const auto most = grants_asked_for();
  Line line;
  std::vector<LockManager> managers;
  for (int i = 0; i < 3; ++i) managers.push_back(open());
  std::minstd_rand random(1);
  const auto come = [&] {
    const auto [who, mode] = line.come(random() % 2 == 0);
    managers[who % managers.size()].lock("a")->async_acquire(
        {.wait = 60s, .mode = mode}, [&line, who = who](error_code ec, LockHandle handle) {
          EXPECT_FALSE(ec) << ec.message();
          if (!ec) line.granted(who, std::move(handle));
        });
    // In the queue, and all of one turn are told.
    return eventually(patience(), [&] { return waiting("a") == line.waiting(); });
  };
  auto first = managers[0].lock("a")->acquire();
  while (line.waiting() < kInLine) ASSERT_TRUE(come());
  EXPECT_FALSE(first.release());
  while (line.grants() < most) {
    ASSERT_TRUE(eventually(patience(), [&] { return line.is_held(); }));
    while (line.waiting() < kInLine) ASSERT_TRUE(come());
    line.release();
  }
  while (line.waiting() > 0 || line.is_held()) {
    ASSERT_TRUE(eventually(patience(), [&] { return line.is_held(); }));
    line.release();
  }
  EXPECT_EQ(line.inversions(), 0U);
  EXPECT_TRUE(becomes_free("a"));
}

}  // namespace
}  // namespace dlock::contract
