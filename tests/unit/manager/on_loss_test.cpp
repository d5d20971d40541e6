// SPDX-License-Identifier: Apache-2.0
//
// OpenOptions::on_loss: each loss of a manager's locks, once, whoever had it.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "dlock/lock_manager.hpp"
#include "dlock/memory.hpp"
#include "dlock/mutex.hpp"
#include "dlock/synchronized.hpp"
#include "testkit/await.hpp"

namespace dlock::tests {
namespace {

using testkit::eventually;
using testkit::patience;

/// A manager on the memory store of that name, and what it was told and has logged.
class Watched {
 public:
  explicit Watched(const std::string& store)
      : manager(LockManager::open("memory://" + store, options())) {}

  std::vector<Loss> losses() const {
    const std::lock_guard lock(mutex_);
    return losses_;
  }
  std::ptrdiff_t logged(LogLevel level, const std::string& text) const {
    const std::lock_guard lock(mutex_);
    return std::count_if(lines_.begin(), lines_.end(), [&](const auto& line) {
      return line.first == level && line.second.find(text) != std::string::npos;
    });
  }

 private:
  OpenOptions options() {
    OpenOptions options;
    options.backends = {&memory::backend()};
    options.on_loss = [this](const Loss& loss) {
      const std::lock_guard lock(mutex_);
      losses_.push_back(loss);
    };
    options.log = [this](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(level, text);
    };
    return options;
  }

  mutable std::mutex mutex_;
  std::vector<Loss> losses_;
  std::vector<std::pair<LogLevel, std::string>> lines_;

 public:
  LockManager manager;  ///< last: it calls the others
};

void evict(const std::string& store, const LockHandle& held) {
  LockManager::open("memory://" + store, {.backends = {&memory::backend()}})
      .evict(held.name(), held.token().value(), {.at_once = true});
}

TEST(OnLoss, TellsOfAHandleAndOfAMutexOnceEach) {
  const std::string store = "on-loss-each";
  Watched watched(store);
  auto held = watched.manager.lock("a")->acquire();
  Mutex mutex(watched.manager.lock("b"));
  mutex.lock();
  evict(store, held);
  ASSERT_TRUE(eventually(patience(), [&] { return watched.losses().size() == 1; }));
  evict(store, *mutex.held());
  ASSERT_TRUE(eventually(patience(), [&] { return watched.losses().size() == 2; }));
  const auto losses = watched.losses();
  EXPECT_EQ(losses[0].name, "a");
  EXPECT_EQ(losses[0].store, "default");
  EXPECT_EQ(losses[0].token, held.token());
  EXPECT_EQ(losses[0].reason, LossReason::broken);
  EXPECT_FALSE(losses[0].through_mutex);
  EXPECT_EQ(losses[1].name, "b");
  EXPECT_TRUE(losses[1].through_mutex);
  EXPECT_EQ(held.release(), errc::lock_lost);
  mutex.unlock();
  watched.manager.close();
  EXPECT_EQ(watched.losses().size(), 2U) << "once each";
  EXPECT_EQ(watched.logged(LogLevel::warning, "lock 'a' of store 'default'"), 1);
  EXPECT_EQ(watched.logged(LogLevel::warning, "through a Mutex"), 1);
}

// Its holder may not have heard of it: then the release does. Told once, whoever is first.
TEST(OnLoss, TellsOfALossThatIsFoundOutAtTheRelease) {
  const std::string store = "on-loss-release";
  Watched watched(store);
  for (std::size_t i = 0; i < 50; ++i) {
    auto held = watched.manager.lock("a")->acquire();
    evict(store, held);
    EXPECT_EQ(held.release(), errc::lock_lost);
    ASSERT_TRUE(eventually(patience(), [&] { return watched.losses().size() == i + 1; }));
  }
  watched.manager.close();
  EXPECT_EQ(watched.losses().size(), 50U) << "once each";
}

TEST(OnLoss, TellsOfTheLocksThatClosingTakesBackAndOfNoOther) {
  Watched watched("on-loss-close");
  EXPECT_FALSE(watched.manager.lock("given back")->acquire().release());
  auto held = watched.manager.lock("a")->acquire();
  watched.manager.close();
  const auto losses = watched.losses();
  ASSERT_EQ(losses.size(), 1U) << "told when close() has returned";
  EXPECT_EQ(losses[0].name, "a");
  EXPECT_EQ(losses[0].reason, LossReason::closed);
  EXPECT_EQ(watched.logged(LogLevel::warning, "is lost"), 0);
  EXPECT_EQ(watched.logged(LogLevel::info, "is lost: closed"), 1);
}

TEST(OnLoss, IsToldBeforeTheHandlesCallbacksAndAfterItsStopToken) {
  const std::string store = "on-loss-order";
  std::vector<std::string> order;
  std::mutex mutex;
  const auto note = [&](const char* what) {
    const std::lock_guard lock(mutex);
    order.emplace_back(what);
  };
  OpenOptions options;
  options.backends = {&memory::backend()};
  options.log = [](LogLevel, std::string_view) {};
  options.on_loss = [&](const Loss&) { note("manager"); };
  auto manager = LockManager::open("memory://" + store, options);
  auto held = manager.lock("a")->acquire();
  const std::stop_callback stopped(held.stop_token(), [&] { note("stop"); });
  held.on_state([&](HandleState, LossReason) { note("handle"); });
  evict(store, held);
  ASSERT_TRUE(eventually(patience(), [&] {
    const std::lock_guard lock(mutex);
    return order.size() == 3;
  }));
  EXPECT_EQ(order, (std::vector<std::string>{"stop", "manager", "handle"}));
}

}  // namespace
}  // namespace dlock::tests
