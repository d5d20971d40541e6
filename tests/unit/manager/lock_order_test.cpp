// SPDX-License-Identifier: Apache-2.0
//
// Locks that are taken in opposite orders: what is told, once, and what is nobody's business.
#include "core/manager/lock_order.hpp"

#include <gtest/gtest.h>

#include <boost/asio/use_future.hpp>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dlock/async.hpp"
#include "dlock/memory.hpp"
#include "dlock/synchronized.hpp"
#include "testkit/await.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using core::LockOrder;

/// A manager, and what it warns of.
class WatchedOrders {
 public:
  explicit WatchedOrders(const std::string& store, bool watch = true)
      : locks(LockManager::open("memory://lock-order-" + store, options(watch))) {}
  ~WatchedOrders() { locks.close(); }

  Mutex mutex(const char* name) { return Mutex(locks.lock(name)); }
  /// All of it has been written when the manager is closed.
  std::vector<std::string> warnings() {
    locks.close();
    const std::lock_guard lock(mutex_);
    return said_;
  }

 private:
  OpenOptions options(bool watch) {
    OpenOptions options;
    options.backends = {&memory::backend()};
    options.watch_lock_order = watch;
    options.log = [this](LogLevel level, std::string_view text) {
      if (text.find("opposite orders") == std::string_view::npos) return;
      EXPECT_EQ(level, LogLevel::warning);
      const std::lock_guard lock(mutex_);
      said_.emplace_back(text);
    };
    return options;
  }

  std::mutex mutex_;
  std::vector<std::string> said_;

 public:
  LockManager locks;  // last: the log is told until it is closed
};

void on_another_thread(const std::function<void()>& work) { std::thread(work).join(); }

void nest(WatchedOrders& watched, const char* outer, const char* inner) {
  auto first = watched.mutex(outer);
  auto second = watched.mutex(inner);
  const std::scoped_lock has_first(first);
  const std::scoped_lock has_second(second);
}

TEST(LockOrder, OppositeOrdersAreToldOnceWithBothNames) {
  WatchedOrders watched("pair");
  for (int i = 0; i < 3; ++i) {
    on_another_thread([&] { nest(watched, "a", "b"); });
    on_another_thread([&] { nest(watched, "b", "a"); });
  }
  const auto said = watched.warnings();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("'a' (by a Mutex, thread "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find(") inside 'b' (by a Mutex)"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("before that 'b' (by a Mutex, thread "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find(") inside 'a' (by a Mutex)"), std::string::npos) << said[0];
}

TEST(LockOrder, OneOrderIsTheWayToDoIt) {
  WatchedOrders watched("one-order");
  on_another_thread([&] { nest(watched, "a", "b"); });
  on_another_thread([&] { nest(watched, "b", "c"); });
  on_another_thread([&] { nest(watched, "a", "c"); });
  // One after the other is no nesting.
  on_another_thread([&] {
    (void)watched.locks.lock("c")->acquire();
    (void)watched.locks.lock("a")->acquire();
  });
  EXPECT_TRUE(watched.warnings().empty());
}

TEST(LockOrder, WhatIsLostIsNotHeldAnyMore) {
  WatchedOrders watched("lost");
  on_another_thread([&] {
    const auto lost = watched.locks.lock("a")->acquire();
    watched.locks.evict("a", lost.token().value(), {.at_once = true});
    ASSERT_TRUE(testkit::eventually(testkit::patience(),
                                    [&] { return lost.state() == HandleState::lost; }));
    (void)watched.locks.lock("b")->acquire();
  });
  on_another_thread([&] { nest(watched, "b", "a"); });
  EXPECT_TRUE(watched.warnings().empty());
}

TEST(LockOrder, ThreeThreadsInARingAreTold) {
  WatchedOrders watched("ring");
  on_another_thread([&] { nest(watched, "a", "b"); });
  on_another_thread([&] { nest(watched, "b", "c"); });
  on_another_thread([&] { nest(watched, "c", "a"); });
  const auto said = watched.warnings();
  ASSERT_EQ(said.size(), 1U);
  for (const char* const name : {"'a'", "'b'", "'c'"}) {
    EXPECT_NE(said[0].find(name), std::string::npos) << said[0];
  }
}

TEST(LockOrder, ItIsToldBeforeTheyWaitForEachOther) {
  WatchedOrders watched("hang");
  auto a = watched.locks.lock("a");
  auto b = watched.locks.lock("b");
  on_another_thread([&] {
    const auto first = a->acquire();
    const auto second = b->acquire();
  });
  const auto other = a->acquire();
  on_another_thread([&] {
    const auto first = b->acquire();
    EXPECT_FALSE(a->try_acquire({.wait = 20ms}));
  });
  const auto said = watched.warnings();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("by acquire()"), std::string::npos) << said[0];
}

#if defined(__cpp_lib_source_location)
TEST(LockOrder, SynchronizedSaysWhere) {
  WatchedOrders watched("where");
  const auto both = [&](const char* outer, const char* inner) {
    synchronized(watched.locks, outer, [&] { synchronized(watched.locks, inner, [] {}); });
  };
  const int line = __LINE__ - 2;
  both("a", "b");
  both("b", "a");
  const auto said = watched.warnings();
  ASSERT_EQ(said.size(), 1U);
  const auto where = "lock_order_test.cpp:" + std::to_string(line);
  EXPECT_NE(said[0].find("by synchronized() at "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find(where), std::string::npos) << said[0];
}
#endif

TEST(LockOrder, SeveralLocksAtOnceHaveOneOrder) {
  WatchedOrders watched("multi");
  on_another_thread([&] { (void)watched.locks.lock_all({"a", "b"})->acquire(); });
  on_another_thread([&] { (void)watched.locks.lock_all({"b", "a"})->acquire(); });
  on_another_thread([&] { nest(watched, "b", "a"); });
  EXPECT_TRUE(watched.warnings().empty());
}

TEST(LockOrder, WhatIsTakenInsideSeveralCounts) {
  WatchedOrders watched("multi-inside");
  on_another_thread([&] {
    Mutex both(watched.locks.lock_all({"a", "b"}));
    const std::scoped_lock has_both(both);
    (void)watched.locks.lock("c")->acquire();
  });
  on_another_thread([&] {
    const auto held = watched.locks.lock("c")->acquire();
    (void)watched.locks.lock_all({"b", "d"})->acquire();
  });
  const auto said = watched.warnings();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("'b'"), std::string::npos) << said[0];
}

TEST(LockOrder, ATryThatDoesNotWaitIsInNobodysWay) {
  WatchedOrders watched("tries");
  on_another_thread([&] { nest(watched, "a", "b"); });
  on_another_thread([&] {
    const auto held = watched.locks.lock("b")->acquire();
    EXPECT_TRUE(watched.locks.lock("a")->try_acquire());
  });
  EXPECT_TRUE(watched.warnings().empty());
}

TEST(LockOrder, ReentryPermitsAndAsynchronousHandlesAreNobodys) {
  WatchedOrders watched("nobodys");
  on_another_thread([&] { nest(watched, "a", "a"); });
  on_another_thread([&] { nest(watched, "a", "b"); });
  on_another_thread([&] {
    auto taken = watched.locks.lock("b")->async_acquire({}, boost::asio::use_future);
    const auto held = taken.get();
    (void)watched.locks.lock("a")->acquire();
  });
  on_another_thread([&] {
    const auto slot = watched.locks.semaphore("b", 2).acquire();
    (void)watched.locks.lock("a")->acquire();
  });
  EXPECT_TRUE(watched.warnings().empty());
}

TEST(LockOrder, OfTwoManagersAreTwoOrders) {
  WatchedOrders one("one");
  WatchedOrders other("other");
  on_another_thread([&] { nest(one, "a", "b"); });
  on_another_thread([&] { nest(other, "b", "a"); });
  on_another_thread([&] {
    const auto held = one.locks.lock("b")->acquire();
    (void)other.locks.lock("a")->acquire();
  });
  EXPECT_TRUE(one.warnings().empty());
  EXPECT_TRUE(other.warnings().empty());
}

TEST(LockOrder, NeedNotBeWatched) {
  WatchedOrders watched("off", false);
  on_another_thread([&] { nest(watched, "a", "b"); });
  on_another_thread([&] { nest(watched, "b", "a"); });
  EXPECT_TRUE(watched.warnings().empty());
}

TEST(LockOrder, WhoCollectsManyIsLeftAlone) {
  WatchedOrders watched("many");
  on_another_thread([&] {
    std::vector<LockHandle> held;
    for (int i = 0; i < 40; ++i) {
      held.push_back(watched.locks.lock("m/" + std::to_string(i))->acquire());
    }
  });
  on_another_thread([&] { nest(watched, "m/30", "m/20"); });
  on_another_thread([&] { nest(watched, "m/3", "m/2"); });
  EXPECT_EQ(watched.warnings().size(), 1U) << "the first ones only";
}

std::string name_of(std::size_t i) { return "lock/" + std::to_string(i); }

TEST(LockOrder, RemembersSoManyPairsAndWarnsSoOften) {
  std::vector<std::string> said;
  LockOrder order([&](const std::string& text) { said.push_back(text); });
  for (std::size_t i = 0; i < LockOrder::kMostPairs + 500; ++i) {
    order.note("outer", {}, name_of(i), {});
  }
  EXPECT_EQ(order.size(), LockOrder::kMostPairs);
  order.note(name_of(0), {}, "outer", {});
  EXPECT_TRUE(said.empty()) << "that one is forgotten";
  for (std::size_t i = 1000; i < 1300; ++i) order.note(name_of(i), {}, "outer", {});
  EXPECT_EQ(said.size(), LockOrder::kMostWarnings + 1);
  EXPECT_NE(said.back().find("not told any more"), std::string::npos);
}

TEST(LockOrder, MayBeNotedByManyThreads) {
  std::atomic<int> said{0};
  LockOrder order([&](const std::string&) { ++said; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < 100; ++i) {
        order.note(name_of(i), {}, name_of(i + 1000), {});
        order.note(name_of(i + 1000), {}, name_of(i), {});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(said, 100);
}

}  // namespace
}  // namespace dlock::tests
