// SPDX-License-Identifier: Apache-2.0
//
// An operator breaks a lock: the record is marked first, and no other client acquires the lock
// before its holder has ended, or its lease is over.
#include <array>
#include <future>
#include <string>
#include <vector>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

const EvictOptions kMarkOnly{"the disk is full", false, milliseconds(0)};

/// Each case breaks an exclusive lock, a lock in shared mode and permits, as far as the store has
/// them.
class BreakContract : public Contract {
 protected:
  enum class Kind { exclusive, reader, permits };

  void SetUp() override {
    Contract::SetUp();
    if (HasFatalFailure()) return;
    if (!capabilities().can_evict) GTEST_SKIP() << "locks cannot be broken there";
  }

  std::vector<Kind> kinds() const {
    std::vector<Kind> all{Kind::exclusive};
    if (capabilities().shared_mode) all.push_back(Kind::reader);
    if (capabilities().permits) all.push_back(Kind::permits);
    return all;
  }
  static std::string name_of(Kind kind) {
    constexpr std::array<const char*, 3> kNames{"exclusive", "reader", "permits"};
    return kNames.at(static_cast<std::size_t>(kind));
  }
  static LockHandle hold(LockManager& manager, Kind kind) {
    if (kind == Kind::permits) return manager.semaphore(name_of(kind), 2).acquire(2);
    AcquireOptions options{.wait = 60s};
    if (kind == Kind::reader) options.mode = Mode::shared;
    return manager.lock(name_of(kind))->acquire(options);
  }
  /// Another client, which no holder may meet.
  std::future<LockHandle> wait_for(LockManager& manager, Kind kind) {
    return std::async(std::launch::async, [&manager, kind] {
      if (kind == Kind::permits)
        return manager.semaphore(name_of(kind), 2).acquire(1, {.wait = 60s});
      return manager.lock(name_of(kind))->acquire({.wait = 60s});
    });
  }
  Evicted strike(Kind kind, const LockHandle& held, const EvictOptions& options) {
    const auto token = held.token().value();
    return kind == Kind::permits ? observer().evict_permits(name_of(kind), token, options)
                                 : observer().evict(name_of(kind), token, options);
  }
  /// Marks the record, and returns the longest time until it is free.
  std::optional<std::chrono::milliseconds> mark(Kind kind, const LockHandle& held) {
    std::optional<std::chrono::milliseconds> within;
    auto options = kMarkOnly;
    options.on_marked = [&](const Evicted& marked) { within = marked.within; };
    const auto left = strike(kind, held, options);
    EXPECT_FALSE(left.is_free);
    EXPECT_EQ(left.within.has_value(), capabilities().lease_scope == LeaseScope::claim);
    return within;
  }
  std::optional<Break> mark_of(Kind kind) {
    if (kind == Kind::permits)
      return observer().semaphore_status(name_of(kind)).holders.at(0).broken;
    const auto status = observer().status(name_of(kind));
    return kind == Kind::reader ? status.readers.at(0).broken : status.broken;
  }
  static bool is_ready(const std::future<LockHandle>& waiter) {
    return waiter.wait_for(0s) == std::future_status::ready;
  }
};
DLOCK_CONTRACT(BreakContract);

TEST_P(BreakContract, TheHolderLosesItAndNoClientAcquiresBeforeItHasEnded) {
  auto holders = open();
  auto others = open();
  for (const auto kind : kinds()) {
    SCOPED_TRACE(name_of(kind));
    auto held = hold(holders, kind);
    auto waiter = wait_for(others, kind);
    const auto marked = strike(kind, held, kMarkOnly);
    EXPECT_FALSE(marked.is_free);
    const auto mark = mark_of(kind);
    ASSERT_TRUE(mark);
    EXPECT_EQ(mark->reason, "the disk is full");
    EXPECT_EQ(mark->by.pid, this_process().pid);
    ASSERT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
    EXPECT_EQ(held.loss_reason(), LossReason::broken);
    EXPECT_NE(held.broken_by().find("the disk is full"), std::string::npos) << held.broken_by();
    EXPECT_FALSE(is_ready(waiter)) << "its work may go on";
    EXPECT_EQ(held.release(), errc::lock_lost);
    ASSERT_EQ(waiter.wait_for(2s), std::future_status::ready) << "freed at once";
    EXPECT_FALSE(waiter.get().release());
  }
}

TEST_P(BreakContract, AReleaseBeforeTheHolderNoticesFreesItAtOnce) {
  auto holders = open();
  auto others = open();
  for (const auto kind : kinds()) {
    SCOPED_TRACE(name_of(kind));
    auto held = hold(holders, kind);
    auto waiter = wait_for(others, kind);
    EXPECT_FALSE(strike(kind, held, kMarkOnly).is_free);
    held.release();
    ASSERT_EQ(waiter.wait_for(2s), std::future_status::ready);
    EXPECT_FALSE(waiter.get().release());
  }
}

TEST_P(BreakContract, AHolderThatIgnoresItKeepsOthersOutUntilTheExpirySeenWhenMarking) {
  if (capabilities().lease_scope == LeaseScope::none) GTEST_SKIP() << "it has no expiry";
  auto holders = open();
  auto others = open();
  for (const auto kind : kinds()) {
    SCOPED_TRACE(name_of(kind));
    auto held = hold(holders, kind);
    auto waiter = wait_for(others, kind);
    const auto begun = steady_clock::now();
    const auto within = mark(kind, held);
    ASSERT_TRUE(within);
    EXPECT_LE(*within, capabilities().lease + 2s);
    // ZooKeeper: the breaker deletes the node.
    auto breaker = std::async(std::launch::async, [&] { return strike(kind, held, {}); });
    auto next = waiter.get();
    const auto took = steady_clock::now() - begun;
    EXPECT_GE(took + 1s, *within);
    EXPECT_LE(took, *within + 3s);
    EXPECT_EQ(held.loss_reason(), LossReason::broken);
    EXPECT_TRUE(breaker.get().is_free);
    EXPECT_EQ(held.release(), errc::lock_lost);
    EXPECT_EQ(next.state(), HandleState::held) << "the late release is of another acquisition";
    EXPECT_FALSE(next.release());
  }
}

TEST_P(BreakContract, EvictReturnsWhenTheLockIsFree) {
  auto holders = open();
  auto others = open();
  for (const auto kind : kinds()) {
    SCOPED_TRACE(name_of(kind));
    auto held = hold(holders, kind);
    const auto token = held.token();
    held.on_state([&](HandleState, LossReason) {});
    auto breaker = std::async(std::launch::async, [&] {
      EvictOptions options;
      options.reason = "again";
      return strike(kind, held, options);
    });
    ASSERT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
    EXPECT_EQ(breaker.wait_for(0s), std::future_status::timeout);
    EXPECT_EQ(held.token(), token);
    held.release();
    EXPECT_TRUE(breaker.get().is_free);
    EXPECT_TRUE(kind == Kind::permits
                    ? others.semaphore(name_of(kind), 2).try_acquire(2).has_value()
                    : others.lock(name_of(kind))->try_acquire().has_value());
  }
}

TEST_P(BreakContract, AStopRequestEndsTheWaitAndTheMarkStays) {
  auto holders = open();
  auto held = hold(holders, Kind::exclusive);
  std::stop_source stop;
  EvictOptions options;
  options.on_marked = [&](const Evicted&) { stop.request_stop(); };
  const auto evicted =
      observer().evict(name_of(Kind::exclusive), held.token().value(), options, stop.get_token());
  EXPECT_FALSE(evicted.is_free);
  EXPECT_TRUE(mark_of(Kind::exclusive));
  held.release();
}

TEST_P(BreakContract, AtOnceFreesItUnderTheHolder) {
  auto holders = open();
  auto others = open();
  for (const auto kind : kinds()) {
    SCOPED_TRACE(name_of(kind));
    auto held = hold(holders, kind);
    auto waiter = wait_for(others, kind);
    EXPECT_FALSE(strike(kind, held, kMarkOnly).is_free);
    EXPECT_TRUE(strike(kind, held, {.at_once = true}).is_free) << "also a marked one";
    ASSERT_EQ(waiter.wait_for(2s), std::future_status::ready);
    EXPECT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
    held.release();
    auto next = waiter.get();
    EXPECT_EQ(next.state(), HandleState::held);
    EXPECT_FALSE(next.release());
  }
}

// Leases that end meanwhile would hide it.
TEST_P(BreakContract, ACloseUnderUnfinishedWorkKeepsTheMark) {
  if (capabilities().lease_scope == LeaseScope::none) GTEST_SKIP() << "it has no expiry";
  auto others = open();
  auto holders = std::make_unique<LockManager>(open());
  auto held = hold(*holders, Kind::exclusive);
  const auto begun = steady_clock::now();
  const auto within = mark(Kind::exclusive, held);
  ASSERT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::lost; }));
  auto waiter = wait_for(others, Kind::exclusive);
  holders->close();
  auto breaker = std::async(std::launch::async,
                            [&] { return error_of([&] { strike(Kind::exclusive, held, {}); }); });
  EXPECT_TRUE(waiter.get());
  EXPECT_GE(steady_clock::now() - begun + 1s, within.value());
  breaker.get();
}

}  // namespace
}  // namespace dlock::contract
