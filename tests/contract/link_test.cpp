// SPDX-License-Identifier: Apache-2.0
//
// The link to the store breaks, falls silent, and heals. Only on stores that have one.
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "dlock/clock.hpp"
#include "tests/contract/links.hpp"
#include "tests/support/guarded.hpp"
#include "tests/support/state_log.hpp"

namespace dlock::contract {
namespace {

using testkit::Direction;
using testkit::StateLog;

class LinkContract : public ContractOfLinks {
 protected:
  static TimePoint deadline_of(const LockHandle& handle) {
    return BoottimeClock::now() + handle.remaining().value_or(0s);
  }
  /// The local deadline has moved on: it was renewed after this call.
  static bool is_renewed(const LockHandle& handle) {
    const auto before = deadline_of(handle) + 50ms;
    return eventually(patience(), [&] { return deadline_of(handle) > before; }) &&
           handle.state() == HandleState::held;
  }
};
DLOCK_CONTRACT_OF_LINKS(LinkContract);

TEST_P(LinkContract, ABreakShorterThanTheLeaseIsSuspectAndThenHeldAgain) {
  auto manager = proxied();
  auto rival = open();
  auto held = manager.lock("a")->acquire();
  StateLog told(held);
  proxy_->refuse(true);
  proxy_->drop_all();
  ASSERT_TRUE(told.wait_for_last(HandleState::suspect));
  EXPECT_EQ(held.state(), HandleState::suspect);
  EXPECT_FALSE(held.stop_token().stop_requested());
  EXPECT_FALSE(rival.lock("a")->try_acquire());
  proxy_->refuse(false);
  ASSERT_TRUE(told.wait_for_last(HandleState::held));
  EXPECT_EQ(told.states(), (std::vector{HandleState::suspect, HandleState::held}));
  EXPECT_NO_THROW(held.check());
  EXPECT_FALSE(rival.lock("a")->try_acquire());
  EXPECT_FALSE(held.release());
}

// Nobody is told of the break: no reset, no end of the connection.
TEST_P(LinkContract, ASilenceShorterThanTheLeaseIsSuspectAndThenHeldAgain) {
  auto manager = proxied();
  auto held = manager.lock("a")->acquire();
  StateLog told(held);
  proxy_->hold(Direction::to_client, true);
  ASSERT_TRUE(told.wait_for_last(HandleState::suspect));
  EXPECT_FALSE(held.stop_token().stop_requested());
  proxy_->hold(Direction::to_client, false);
  ASSERT_TRUE(told.wait_for_last(HandleState::held));
  for (const auto state : told.states()) EXPECT_NE(state, HandleState::lost);
  EXPECT_FALSE(held.release());
}

TEST_P(LinkContract, F04_ABrokenRenewalIsTriedAgainAndTheNextLockOfTheNameIsRenewedToo) {
  auto manager = proxied();
  // Shared: the proxy outlives this body.
  const auto armed = std::make_shared<std::atomic<bool>>(false);
  proxy_->on_data([armed](Direction direction, testkit::ConnectionId, std::string_view) {
    const bool now = direction == Direction::to_server && armed->exchange(false);
    return now ? testkit::Verdict::reset : testkit::Verdict::forward;
  });
  for (const bool broken : {true, false}) {
    auto held = manager.lock("a")->acquire();
    StateLog told(held);
    *armed = broken;  // the next request: a renewal
    ASSERT_TRUE(eventually(patience(), [&] { return !*armed; }));
    EXPECT_TRUE(is_renewed(held));
    for (const auto state : told.states()) EXPECT_NE(state, HandleState::lost);
    EXPECT_FALSE(held.release());
  }
}

// Of use under ThreadSanitizer most of all.
TEST_P(LinkContract, F70_SixtyFourThreadsWhileLinksBreak) {
  constexpr unsigned kThreads = 64;
  constexpr int kBreaks = 40;
  testkit::Guarded guarded;
  std::vector<LockManager> managers;
  for (int i = 0; i < 4; ++i) managers.push_back(proxied());
  for (auto& manager : managers) manager.connect();
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back(testkit::work_under_a_lock, managers[i % 4].lock("a"), std::ref(guarded),
                         std::cref(stop), i, 10s);
  }
  std::mt19937 dice(70);  // NOLINT: the same breaks at each run
  for (int i = 0; i < kBreaks; ++i) {
    const auto before = guarded.grants.load();
    eventually(within(150ms), [&] { return guarded.grants > before + 3; });
    switch (dice() % 3) {
      case 0:
        proxy_->drop_all();
        break;
      case 1:
        proxy_->reset_after(Direction::to_server, dice() % 2000);
        break;
      default:
        proxy_->reset_after(Direction::to_client, dice() % 2000);
        break;
    }
  }
  const auto before = guarded.grants.load();
  EXPECT_TRUE(eventually(patience(), [&] { return guarded.grants > before + 3; }));
  stop = true;
  threads.clear();
  EXPECT_EQ(guarded.overlaps, 0);
  EXPECT_EQ(guarded.stale_tokens, 0);
  EXPECT_TRUE(becomes_free("a"));
}

}  // namespace
}  // namespace dlock::contract
