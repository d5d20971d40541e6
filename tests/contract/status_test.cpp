// SPDX-License-Identifier: Apache-2.0
//
// What operators see and may do.
#include <unistd.h>

#include <algorithm>
#include <future>
#include <set>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

class StatusContract : public Contract {};
DLOCK_CONTRACT(StatusContract);

TEST_P(StatusContract, OfALockThatNobodyEverTook) {
  const auto status = observer().status("never");
  EXPECT_EQ(status.name, "never");
  EXPECT_FALSE(status.held);
  EXPECT_FALSE(status.token);
  EXPECT_FALSE(status.owner);
  EXPECT_TRUE(status.waiting.empty());
}

TEST_P(StatusContract, ShowsHolderAndQueue) {
  auto manager = open();
  auto held = manager.lock("a")->acquire();
  std::vector<std::unique_ptr<Peer>> waiters;
  for (std::size_t i = 0; i < 3; ++i) {
    waiters.push_back(peer("a"));
    ASSERT_TRUE(waiters_become("a", i + 1));
  }
  const auto status = observer().status("a");
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.token, held.token());
  ASSERT_TRUE(status.owner);
  EXPECT_EQ(status.owner->pid, ::getpid());
  EXPECT_FALSE(status.owner->host.empty());
  EXPECT_FALSE(status.owner->app.empty());
  EXPECT_EQ(status.owner->id.size(), 36U);
  EXPECT_LT(status.held_for.value_or(0ms), 10min);
  EXPECT_EQ(status.remaining.has_value(), capabilities().lease_scope != LeaseScope::none);
  ASSERT_EQ(status.waiting.size(), harness().shows_waiters() ? 3U : 0U);
  std::set<std::string> ids{status.owner->id};
  for (const auto& waiter : status.waiting) {
    EXPECT_EQ(waiter.pid != ::getpid(), harness().has_processes());
    EXPECT_FALSE(waiter.host.empty());
    ids.insert(waiter.id);
  }
  EXPECT_EQ(ids.size(), 1 + status.waiting.size());
  for (const auto& waiter : waiters) waiter->release();
  EXPECT_TRUE(waiters_become("a", 0));
}

TEST_P(StatusContract, ListShowsTheLocksBelowAPrefixOfWholeParts) {
  if (!capabilities().can_list) {
    EXPECT_EQ(error_of([&] { observer().list(); }), errc::not_supported);
    return;
  }
  auto manager = open();
  std::vector<LockHandle> held;
  for (const std::string name : {"a", "a/b", "a/b/c", "ab", "b"}) {
    held.push_back(manager.lock(name)->acquire());
  }
  const auto waiter = peer("a/b");
  ASSERT_TRUE(waiters_become("a/b", 1));
  const auto names = [&](const std::string& prefix) {
    std::set<std::string> found;
    for (const auto& status : observer().list(prefix)) {
      if (status.held) found.insert(status.name);
    }
    return found;
  };
  EXPECT_EQ(names(""), (std::set<std::string>{"a", "a/b", "a/b/c", "ab", "b"}));
  EXPECT_EQ(names("a"), (std::set<std::string>{"a", "a/b", "a/b/c"}));
  EXPECT_EQ(names("a/b"), (std::set<std::string>{"a/b", "a/b/c"}));
  EXPECT_EQ(names("x"), (std::set<std::string>{}));
  for (const auto& status : observer().list("a/b")) {
    EXPECT_EQ(status.waiting.size(), status.name == "a/b" ? 1U : 0U);
    EXPECT_EQ(status.token.has_value(), status.held);
  }
}

TEST_P(StatusContract, EvictTakesTheLockFromItsHolderOrSaysWhyNot) {
  const auto holder = peer("a");
  const auto token = holder->wait_held(patience());
  ASSERT_TRUE(token);
  if (!capabilities().can_evict) {
    try {
      observer().evict("a", *token, {.at_once = true});
      ADD_FAILURE() << "evicted";
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), errc::not_supported);
      const auto pid = std::to_string(observer().status("a").owner.value().pid);
      EXPECT_NE(std::string(error.what()).find(pid), std::string::npos) << error.what();
    }
    EXPECT_TRUE(observer().status("a").held);
    return;
  }
  EXPECT_EQ(error_of([&] { observer().evict("a", *token + 1, {.at_once = true}); }),
            errc::not_holder);
  EXPECT_EQ(error_of([&] { observer().evict("b", *token, {.at_once = true}); }), errc::not_found);
  EXPECT_TRUE(observer().status("a").held) << "it was left alone";
  auto manager = open();
  auto waiter = std::async(std::launch::async, [&] { return manager.lock("a")->acquire(); });
  ASSERT_TRUE(waiters_become("a", 1));
  // A store may begin to look for breaks a moment after the grant.
  const auto is_old = [&] {
    return observer().status("a").held_for.value_or(std::chrono::hours(1)) >=
           std::chrono::milliseconds(500);
  };
  ASSERT_TRUE(eventually(patience(), is_old));
  observer().evict("a", *token, {.at_once = true});
  const auto reason = holder->wait_lost(patience());
  ASSERT_TRUE(reason);
  if (harness().tells_breaks()) {
    EXPECT_EQ(*reason, "broken");
  } else {  // taken: the next owner was there before the renewal that tells it
    EXPECT_TRUE(*reason == "removed" || *reason == "taken") << *reason;
  }
  const auto next = waiter.get();
  EXPECT_GT(*next.token(), *token);
  EXPECT_EQ(error_of([&] { observer().evict("a", *token, {.at_once = true}); }), errc::not_holder);
}

TEST_P(StatusContract, DeclaresWhatItPromises) {
  const auto& declared = capabilities();
  EXPECT_FALSE(declared.assumptions.empty() && declared.guarantee == Guarantee::exclusive)
      << "what exclusion rests on has names";
  for (const auto& assumption : declared.assumptions) EXPECT_FALSE(assumption.meaning.empty());
  EXPECT_EQ(declared.shortfalls.empty(), declared.guarantee == Guarantee::exclusive);
  for (const auto& shortfall : declared.shortfalls) EXPECT_FALSE(shortfall.remedy.empty());
  EXPECT_EQ(declared.lease > 0ms, declared.lease_scope != LeaseScope::none);
}

}  // namespace
}  // namespace dlock::contract
