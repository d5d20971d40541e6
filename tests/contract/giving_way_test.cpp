// SPDX-License-Identifier: Apache-2.0
//
// Giving way: a holder hears that somebody waits, and that he is asked for his lock; he gives it
// back, or not.
#include <mutex>

#include "tests/contract/contract.hpp"

namespace dlock::contract {
namespace {

/// What a handle was told. Any thread.
class Heard {
 public:
  void add(const Revocation& how) {
    const std::lock_guard lock(mutex_);
    all_.push_back(how);
  }
  std::size_t count() const { return all().size(); }
  std::vector<Revocation> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Revocation> all_;
};

class GivingWayContract : public Contract {
 protected:
  bool asks() {
    if (capabilities().can_ask) return true;
    auto manager = open();
    const auto lock = manager.lock("a");
    EXPECT_EQ(error_of([&] { const auto held = lock->acquire({.revocable = true}); }),
              errc::invalid_argument);
    const auto held = lock->acquire({.wait = 60s});
    EXPECT_EQ(error_of([&] { observer().ask("a"); }), errc::not_supported);
    return false;
  }
  bool tells() {
    if (capabilities().can_tell_contention) return true;
    auto manager = open();
    EXPECT_EQ(
        error_of([&] { const auto held = manager.lock("a")->acquire({.tell_contention = true}); }),
        errc::invalid_argument);
    return false;
  }
};
DLOCK_CONTRACT(GivingWayContract);

TEST_P(GivingWayContract, AHolderHearsOnceThatSomebodyWaits) {
  if (!tells()) return;
  auto manager = open();
  std::atomic<int> told = 0;
  auto held = manager.lock("a")->acquire({.wait = 60s, .tell_contention = true});
  held.on_contended([&told] { ++told; });
  const auto first = peer("a");
  ASSERT_TRUE(eventually(patience(), [&] { return told == 1; }));
  const auto second = peer("a");
  ASSERT_TRUE(waiters_become("a", 2));
  EXPECT_EQ(told, 1);
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
}

TEST_P(GivingWayContract, WhoCameBeforeTheCallbackIsHeardOf) {
  if (!tells()) return;
  auto manager = open();
  auto held = manager.lock("a")->acquire({.wait = 60s, .tell_contention = true});
  const auto first = peer("a");
  ASSERT_TRUE(waiters_become("a", 1));
  std::atomic<int> told = 0;
  held.on_contended([&told] { ++told; });
  EXPECT_TRUE(eventually(patience(), [&] { return told == 1; }));
}

TEST_P(GivingWayContract, WhoIsAskedHearsByWhomAndInWhichTime) {
  if (!asks()) return;
  auto manager = open();
  Heard heard;
  auto held = manager.lock("a")->acquire({.wait = 60s, .revocable = true});
  held.on_revoke([&heard](const Revocation& how) { heard.add(how); });
  // What a store shows of who listens may come a moment later than the grant.
  ASSERT_TRUE(eventually(patience(), [&] {
    const auto asked = observer().ask("a", held.token(), 30s);
    EXPECT_EQ(asked.token, held.token());
    return asked.heard.value_or(true);
  }));
  ASSERT_TRUE(eventually(patience(), [&] { return heard.count() > 0; }));
  const auto how = heard.all().front();
  EXPECT_EQ(how.within, 30s);
  EXPECT_NE(how.who.find("pid"), std::string::npos) << how.who;
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
}

TEST_P(GivingWayContract, WhoIsAskedAgainHearsItAgain) {
  if (!asks()) return;
  auto manager = open();
  Heard heard;
  auto held = manager.lock("a")->acquire({.wait = 60s, .revocable = true});
  held.on_revoke([&heard](const Revocation& how) { heard.add(how); });
  observer().ask("a");
  ASSERT_TRUE(eventually(patience(), [&] { return heard.count() == 1; }));
  EXPECT_FALSE(heard.all().front().within);
  observer().ask("a");
  EXPECT_TRUE(eventually(patience(), [&] { return heard.count() == 2; }));
}

TEST_P(GivingWayContract, WhoGivesItBackMakesRoom) {
  if (!asks()) return;
  auto manager = open();
  std::atomic<bool> give_way = false;
  auto held = manager.lock("a")->acquire({.wait = 60s, .revocable = true});
  held.on_revoke([&give_way](const Revocation&) { give_way = true; });
  const auto other = peer("a");
  ASSERT_TRUE(waiters_become("a", 1));
  observer().ask("a");
  ASSERT_TRUE(eventually(patience(), [&] { return give_way.load(); }));
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(other->wait_held(patience()));
}

TEST_P(GivingWayContract, WhoDoesNotListenIsLeftAlone) {
  if (!asks()) return;
  auto manager = open();
  auto held = manager.lock("a")->acquire({.wait = 60s});
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(observer().ask("a").heard.value_or(false))
        << "asked for the " << i + 1 << ". time";
  }
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
  const auto next = manager.lock("a")->acquire({.wait = 60s, .revocable = true});
  EXPECT_EQ(next.state(), HandleState::held);
}

TEST_P(GivingWayContract, OnlyTheOneWhoWasMeantIsAsked) {
  if (!asks()) return;
  EXPECT_EQ(error_of([&] { observer().ask("a"); }), errc::not_found);
  auto manager = open();
  Heard heard;
  auto held = manager.lock("a")->acquire({.wait = 60s, .revocable = true});
  held.on_revoke([&heard](const Revocation& how) { heard.add(how); });
  EXPECT_EQ(error_of([&] { observer().ask("a", *held.token() + 1); }), errc::not_holder);
  observer().ask("a", held.token());
  ASSERT_TRUE(eventually(patience(), [&] { return heard.count() > 0; }));
  EXPECT_EQ(heard.count(), 1U);
}

TEST_P(GivingWayContract, OneOfSeveralLocksIsAskedFor) {
  if (!asks() || !capabilities().can_tell_contention) return;
  auto manager = open();
  Heard heard;
  std::atomic<int> contended = 0;
  auto held = manager.lock_all({"a", "b"})
                  ->acquire({.wait = 60s, .tell_contention = true, .revocable = true});
  held.on_revoke([&heard](const Revocation& how) { heard.add(how); });
  held.on_contended([&contended] { ++contended; });
  observer().ask("b");
  ASSERT_TRUE(eventually(patience(), [&] { return heard.count() == 1; }));
  const auto first = peer("a");
  const auto second = peer("b");
  ASSERT_TRUE(eventually(patience(), [&] { return contended == 1; }));
  EXPECT_FALSE(held.release());
}

}  // namespace
}  // namespace dlock::contract
