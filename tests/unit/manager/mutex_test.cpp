// SPDX-License-Identifier: Apache-2.0
//
// Mutex and synchronized when the lock is lost meanwhile: who is told, and what is thrown.
#include "dlock/mutex.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "dlock/memory.hpp"
#include "dlock/synchronized.hpp"
#include "testkit/await.hpp"

namespace dlock::tests {
namespace {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::patience;

LockManager open(const std::string& store) {
  return LockManager::open("memory://" + store, {.backends = {&memory::backend()}});
}

/// Takes the lock of that name from its holder, behind its back, and waits until that is known.
void take_away(const std::string& store, const LockHandle& held) {
  open(store).evict(held.name(), held.token().value(), {.at_once = true});
  ASSERT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
}

template <class Call>
std::optional<error_code> error_of(Call call) {
  try {
    call();
    return std::nullopt;
  } catch (const LockError& error) {
    return error.code();
  }
}

TEST(SharedMutex, CountsReadersAndWritersOfAThreadApart) {
  auto manager = open("shared-mutex");
  SharedMutex mutex(manager.lock("a"));
  mutex.lock_shared();
  mutex.lock_shared();
  EXPECT_EQ(error_of([&] { mutex.lock(); }), errc::operation_not_permitted);
  EXPECT_EQ(error_of([&] { mutex.unlock(); }), errc::operation_not_permitted);
  mutex.unlock_shared();
  EXPECT_NE(mutex.held(), nullptr);
  mutex.unlock_shared();
  EXPECT_EQ(mutex.held(), nullptr);
  EXPECT_EQ(error_of([&] { mutex.unlock_shared(); }), errc::operation_not_permitted);

  mutex.lock();
  mutex.lock();
  mutex.unlock_and_lock_shared();
  EXPECT_EQ(mutex.held()->mode(), Mode::exclusive) << "the outer one is a writer still";
  mutex.unlock();
  EXPECT_EQ(mutex.held()->mode(), Mode::shared);
  mutex.unlock_shared();
  EXPECT_EQ(mutex.held(), nullptr);
}

TEST(SharedMutex, WhoStepsDownFromWhatItLostIsToldSo) {
  const std::string store = "shared-mutex-lost";
  auto manager = open(store);
  SharedMutex mutex(manager.lock("a"));
  mutex.lock();
  take_away(store, *mutex.held());
  EXPECT_EQ(error_of([&] { mutex.unlock_and_lock_shared(); }), errc::lock_lost);
  EXPECT_EQ(error_of([&] { mutex.lock_shared(); }), errc::lock_lost);
  error_code ec;
  mutex.unlock_shared(ec);
  EXPECT_EQ(ec, errc::lock_lost) << "its last part was a reader's";
}

TEST(SharedMutex, OfSeveralLocksIsNoWayDown) {
  auto manager = open("shared-mutex-several");
  SharedMutex mutex(manager.lock_all({"a", "b"}));
  mutex.lock_shared();
  EXPECT_EQ(mutex.held()->mode(), Mode::shared);
  EXPECT_EQ(error_of([&] { mutex.lock(); }), errc::operation_not_permitted);
  EXPECT_FALSE(manager.lock("b")->try_acquire());
  EXPECT_TRUE(manager.lock("b")->try_acquire({.mode = Mode::shared}));
  mutex.unlock_shared();
  mutex.lock();
  EXPECT_EQ(error_of([&] { mutex.unlock_and_lock_shared(); }), errc::not_supported);
  EXPECT_EQ(mutex.held()->mode(), Mode::exclusive);
  mutex.unlock();
}

TEST(Mutex, UnlockSaysWhatCameOfIt) {
  const std::string store = "mutex-unlock";
  auto manager = open(store);
  Mutex mutex(manager.lock("a"));
  error_code ec;
  mutex.unlock(ec);
  EXPECT_EQ(ec, errc::operation_not_permitted);

  mutex.lock();
  mutex.unlock(ec);
  EXPECT_FALSE(ec) << ec.message();

  mutex.lock();
  mutex.lock();
  take_away(store, *mutex.held());
  mutex.unlock(ec);
  EXPECT_EQ(ec, errc::lock_lost) << "also of an inner one";
  mutex.unlock(ec);
  EXPECT_EQ(ec, errc::lock_lost);
  EXPECT_EQ(mutex.held(), nullptr);

  mutex.lock();
  take_away(store, *mutex.held());
  EXPECT_NO_THROW(mutex.unlock()) << "as std::mutex";
}

TEST(Synchronized, HandsItsWorkAStopTokenOrTheHandleIfItTakesOne) {
  auto manager = open("synchronized-hands");
  EXPECT_TRUE(synchronized(manager, "a", [](std::stop_token lost) {
    return lost.stop_possible() && !lost.stop_requested();
  }));
  const auto token = synchronized(manager, "a", [](const LockHandle& held) {
    held.check();
    return held.token().value();
  });
  EXPECT_GT(token, 0U);
  EXPECT_EQ(synchronized(manager, "a", [] { return 7; }), 7);
  int number = 0;
  int& same = synchronized(manager, "a", [&number]() -> int& { return number; });
  EXPECT_EQ(&same, &number);
  auto owned = synchronized(manager, "a", [] { return std::make_unique<int>(5); });
  EXPECT_EQ(*owned, 5);
}

TEST(Synchronized, ALossThatTheWorkWasNotToldOfIsThrown) {
  const std::string store = "synchronized-untold";
  auto manager = open(store);
  Mutex inside(manager.lock("a"));
  bool done = false;
  EXPECT_EQ(error_of([&] {
              synchronized(manager, "a", [&] {
                take_away(store, *inside.held());
                done = true;
              });
            }),
            errc::lock_lost);
  EXPECT_TRUE(done);
  EXPECT_EQ(inside.held(), nullptr) << "it was left all the same";
}

TEST(Synchronized, WorkThatWasToldHasTheLastWord) {
  const std::string store = "synchronized-told";
  auto manager = open(store);
  Mutex inside(manager.lock("a"));
  EXPECT_EQ(synchronized(manager, "a",
                         [&](const std::stop_token& lost) {
                           take_away(store, *inside.held());
                           while (!lost.stop_requested()) std::this_thread::sleep_for(1ms);
                           return std::string("half done");
                         }),
            "half done");
  EXPECT_EQ(synchronized(manager, "a",
                         [&](const LockHandle& held) {
                           take_away(store, held);
                           return held.state();
                         }),
            HandleState::lost);
}

TEST(Synchronized, WhatTheWorkThrowsCountsForMoreThanTheLoss) {
  const std::string store = "synchronized-throws";
  auto manager = open(store);
  Mutex inside(manager.lock("a"));
  EXPECT_THROW(synchronized(manager, "a",
                            [&] {
                              take_away(store, *inside.held());
                              throw std::runtime_error("work");
                            }),
               std::runtime_error);
  EXPECT_EQ(inside.held(), nullptr);
}

TEST(Synchronized, AnInnerOneThrowsToo) {
  const std::string store = "synchronized-inner";
  auto manager = open(store);
  Mutex inside(manager.lock("a"));
  bool inner_threw = false;
  EXPECT_EQ(error_of([&] {
              synchronized(manager, "a", [&] {
                const auto inner = error_of(
                    [&] { synchronized(manager, "a", [&] { take_away(store, *inside.held()); }); });
                inner_threw = inner == errc::lock_lost;
              });
            }),
            errc::lock_lost);
  EXPECT_TRUE(inner_threw);
}

}  // namespace
}  // namespace dlock::tests
