// SPDX-License-Identifier: Apache-2.0
//
// The thread of observers: it waits for no store, tells what has changed and nothing else.
#include "core/leader/observers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "testkit/await.hpp"

namespace dlock::core {
namespace {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::patience;

/// A store that answers when the test says so.
class Asked {
 public:
  Observation observation(std::chrono::milliseconds every) {
    Observation what;
    what.look = [this](LookDone done) {
      const std::lock_guard lock(mutex_);
      ++looks_;
      if (at_once_) return done(look_of(*at_once_));
      waiting_.push_back(std::move(done));
    };
    what.tell = [this](const std::optional<Owner>& who) {
      const std::lock_guard lock(mutex_);
      told_.push_back(who ? who->id : "");
    };
    what.every = every;
    return what;
  }
  static Look look_of(const std::string& id) {
    Look look;
    if (!id.empty()) look.holder = Owner{id, {}, 0, {}};
    return look;
  }
  void always(std::string id) {
    const std::lock_guard lock(mutex_);
    at_once_ = std::move(id);
  }
  void answer(const Look& look) {
    ASSERT_TRUE(eventually(patience(), [&] { return is_asked(); }));
    std::unique_lock lock(mutex_);
    const auto done = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    lock.unlock();
    done(look);
  }
  bool is_asked() const {
    const std::lock_guard lock(mutex_);
    return !waiting_.empty();
  }
  int looks() const {
    const std::lock_guard lock(mutex_);
    return looks_;
  }
  std::vector<std::string> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  bool reaches(const std::vector<std::string>& all) const {
    return eventually(patience(), [&] { return told() == all; });
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> at_once_;
  std::vector<LookDone> waiting_;
  std::vector<std::string> told_;
  int looks_ = 0;
};

TEST(Observers, TellWhatHasChangedInOrderAndOnce) {
  Asked store;
  const auto id = observe(store.observation(1h));
  store.answer(Asked::look_of("a"));
  ASSERT_TRUE(store.reaches({"a"}));
  for (const auto* const next : {"a", "", "", "b", "a"}) {
    look_now(id);
    store.answer(Asked::look_of(next));
  }
  EXPECT_TRUE(store.reaches({"a", "", "b", "a"}));
  stop_observing(id);
}

TEST(Observers, OneThatIsSilentIsInNobodysWay) {
  Asked silent;
  Asked other;
  const auto first = observe(silent.observation(1ms));
  ASSERT_TRUE(eventually(patience(), [&] { return silent.is_asked(); }));
  other.always("a");
  const auto second = observe(other.observation(1h));
  ASSERT_TRUE(other.reaches({"a"}));
  other.always("b");
  look_now(second);
  EXPECT_TRUE(other.reaches({"a", "b"}));
  EXPECT_EQ(silent.looks(), 1) << "it is not asked again before it has answered";
  stop_observing(first);
  stop_observing(second);
  silent.answer(Asked::look_of("late"));
  EXPECT_TRUE(silent.told().empty());
}

TEST(Observers, ManyWordsAreOneLookEachFewMilliseconds) {
  Asked store;
  store.always("a");
  const auto id = observe(store.observation(1h));
  ASSERT_TRUE(store.reaches({"a"}));
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 10'000; ++i) look_now(id);
  const auto took = std::chrono::steady_clock::now() - began;
  const auto most = 3 + took / 10ms;
  EXPECT_LE(store.looks(), most);
  stop_observing(id);
}

TEST(Observers, AnErrorTellsNothingAndClosedEndsIt) {
  Asked store;
  const auto id = observe(store.observation(1ms));
  Look unknown;
  unknown.error = make_error_code(errc::unavailable);
  store.answer(unknown);
  store.answer(Asked::look_of("a"));
  ASSERT_TRUE(store.reaches({"a"}));
  Look closed;
  closed.error = make_error_code(errc::closed);
  store.answer(closed);
  look_now(id);
  stop_observing(id);
  EXPECT_EQ(store.told(), std::vector<std::string>{"a"});
}

TEST(Observers, WhatIsThrownIsALookThatHasFoundNothing) {
  Observation what;
  std::atomic<int> looks = 0;
  what.look = [&](const LookDone& done) {
    if (++looks == 1) throw std::runtime_error("a look");
    done(Asked::look_of("a"));
  };
  std::atomic<int> told = 0;
  what.tell = [&](const std::optional<Owner>&) { ++told; };
  what.every = 1ms;
  const auto id = observe(std::move(what));
  EXPECT_TRUE(eventually(patience(), [&] { return told == 1; }));
  stop_observing(id);
}

}  // namespace
}  // namespace dlock::core
