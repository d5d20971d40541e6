// SPDX-License-Identifier: Apache-2.0
//
// A lock that stays with its process after the release, on every store that says when somebody else
// asks: it is taken again at once, and never stands in anybody's way.
#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include "tests/contract/links.hpp"

namespace dlock::contract {
namespace {

/// For longer than any test lasts: what ends it is somebody who asks.
std::string cached_url(const std::string& url) {
  return url + (url.find('?') == std::string::npos ? "?" : "&") + "cache=1h";
}

/// Taken and given back; its token.
std::optional<std::uint64_t> use(LockManager& manager) {
  auto held = manager.lock("a")->acquire({.wait = 60s});
  const auto token = held.token();
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
  return token;
}

class CacheContract : public Contract {
 protected:
  LockManager open_cached() const { return LockManager::open(cached_url(url()), open_options()); }
  bool tells() {
    if (capabilities().can_tell_contention) return true;
    EXPECT_EQ(error_of([&] { open_cached(); }), errc::config_invalid);
    return false;
  }
};
DLOCK_CONTRACT(CacheContract);

class CacheLinkContract : public ContractOfLinks {};
DLOCK_CONTRACT_OF_LINKS(CacheLinkContract);

TEST_P(CacheContract, StaysUntilTheEndIfNobodyAsks) {
  if (!tells()) return;
  auto manager = open_cached();
  const auto token = use(manager);
  EXPECT_TRUE(observer().status("a").held);
  EXPECT_EQ(use(manager), token);
  manager.close();
  EXPECT_TRUE(becomes_free("a"));
}

TEST_P(CacheContract, GivesWayToWhoeverAsks) {
  if (!tells()) return;
  auto manager = open_cached();
  const auto token = use(manager);
  for (int round = 0; round < 3; ++round) {
    const auto other = peer("a");
    ASSERT_TRUE(other->wait_held(patience()));
    other->release();
    const auto again = use(manager);
    EXPECT_GT(again, token);
    EXPECT_EQ(use(manager), again);
  }
}

TEST_P(CacheContract, GivesWayAtTheReleaseWhileItIsUsed) {
  if (!tells()) return;
  auto manager = open_cached();
  auto held = manager.lock("a")->acquire();
  const auto other = peer("a");
  ASSERT_TRUE(waiters_become("a", 1));
  EXPECT_FALSE(held.release());
  ASSERT_TRUE(other->wait_held(patience()));
  other->release();
  use(manager);
}

TEST_P(CacheContract, GivesWayToWhoeverAskedBeforeItsOwnTurnCame) {
  if (!tells()) return;
  auto manager = open_cached();
  const auto first = peer("a");
  ASSERT_TRUE(first->wait_held(patience()));
  auto ours =
      std::async(std::launch::async, [&] { return manager.lock("a")->acquire({.wait = 60s}); });
  ASSERT_TRUE(waiters_become("a", 1));
  const auto last = peer("a");
  ASSERT_TRUE(waiters_become("a", 2));
  first->release();
  auto held = ours.get();
  EXPECT_FALSE(held.release());
  ASSERT_TRUE(last->wait_held(patience()));
  last->release();
}

TEST_P(CacheContract, AReaderIsNotGivenWhatAWriterLeftHere) {
  if (!tells() || !capabilities().shared_mode) return;
  auto manager = open_cached();
  use(manager);
  const auto reader = manager.lock("a")->acquire({.wait = 60s, .mode = Mode::shared});
  EXPECT_EQ(reader.mode(), Mode::shared);
  const auto other = observer().lock("a")->acquire({.wait = 60s, .mode = Mode::shared});
  EXPECT_EQ(reader.state(), HandleState::held);
  EXPECT_FALSE(manager.lock("a")->try_acquire());
}

TEST_P(CacheContract, AWriterOfALockThatStaysDoesNotStepDown) {
  if (!tells()) return;
  auto manager = open_cached();
  auto held = manager.lock("a")->acquire({.wait = 60s});
  EXPECT_EQ(held.downgrade(), errc::not_supported);
  EXPECT_EQ(held.mode(), Mode::exclusive);
}

TEST_P(CacheContract, BrokenWhileNobodyUsesItIsAskedForAnew) {
  if (!tells() || !capabilities().can_evict) return;
  auto manager = open_cached();
  const auto token = use(manager);
  observer().evict("a", token.value(), {.at_once = true});
  // Until the word comes it may be given once more, and is lost then while it is held.
  ASSERT_TRUE(eventually(patience(), [&] {
    auto held = manager.lock("a")->acquire({.wait = 60s});
    const bool anew = held.token() != token;
    held.release();
    return anew;
  }));
  EXPECT_GT(use(manager), token);
}

TEST_P(CacheContract, AForkedChildHasNothingOfIt) {
  if (!tells()) return;
  auto manager = open_cached();
  const auto lock = manager.lock("a");
  const auto token = use(manager);
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    error_code ec;
    const auto got = lock->acquire({}, {}, ec);
    ::_exit(!got && ec == errc::closed ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(use(manager), token);
}

TEST_P(CacheLinkContract, WhoAsksWhileTheLinkIsBrokenIsHeardOnceItHeals) {
  if (!capabilities().can_tell_contention) return;
  auto manager = proxied(cached_url(url()));
  use(manager);
  proxy_->refuse(true);
  proxy_->drop_all();
  const auto other = peer("a");
  ASSERT_TRUE(waiters_become("a", 1));
  proxy_->refuse(false);
  ASSERT_TRUE(other->wait_held(patience()));
  other->release();
  use(manager);
}

}  // namespace
}  // namespace dlock::contract
