// SPDX-License-Identifier: Apache-2.0
//
// The link to the store breaks, falls silent, and heals. Only on stores that have one.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "dlock/clock.hpp"
#include "testkit/fault_proxy.hpp"
#include "tests/contract/contract.hpp"
#include "tests/support/guarded.hpp"

namespace dlock::contract {
namespace {

using testkit::Direction;
using testkit::FaultProxy;

/// The states that a handle was told, in their order.
class Told {
 public:
  explicit Told(LockHandle& handle) {
    handle.on_state([shared = shared_](HandleState state, LossReason) {
      const std::lock_guard guard(shared->mutex);
      shared->states.push_back(state);
      shared->changed.notify_all();
    });
  }
  bool wait_for(HandleState state) {
    std::unique_lock guard(shared_->mutex);
    return shared_->changed.wait_until(guard, patience(), [&] {
      return !shared_->states.empty() && shared_->states.back() == state;
    });
  }
  std::vector<HandleState> all() {
    const std::lock_guard guard(shared_->mutex);
    return shared_->states;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<HandleState> states;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

class LinkContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    proxy_.emplace(harness().port());
  }
  /// A manager behind the proxy.
  LockManager proxied() const {
    std::string through = url();
    const auto port = std::to_string(harness().port());
    through.replace(through.find(port), port.size(), std::to_string(proxy_->port()));
    return LockManager::open(through, open_options());
  }
  static TimePoint deadline_of(const LockHandle& handle) {
    return BoottimeClock::now() + handle.remaining().value_or(0s);
  }
  /// The local deadline has moved on: it was renewed after this call.
  static bool is_renewed(const LockHandle& handle) {
    const auto before = deadline_of(handle) + 50ms;
    return eventually(patience(), [&] { return deadline_of(handle) > before; }) &&
           handle.state() == HandleState::held;
  }

  std::optional<FaultProxy> proxy_;
};
DLOCK_CONTRACT_OF_LINKS(LinkContract);

TEST_P(LinkContract, ABreakShorterThanTheLeaseIsSuspectAndThenHeldAgain) {
  auto manager = proxied();
  auto rival = open();
  auto held = manager.lock("a")->acquire();
  Told told(held);
  proxy_->refuse(true);
  proxy_->drop_all();
  ASSERT_TRUE(told.wait_for(HandleState::suspect));
  EXPECT_EQ(held.state(), HandleState::suspect);
  EXPECT_FALSE(held.stop_token().stop_requested());
  EXPECT_FALSE(rival.lock("a")->try_acquire());
  proxy_->refuse(false);
  ASSERT_TRUE(told.wait_for(HandleState::held));
  EXPECT_EQ(told.all(), (std::vector{HandleState::suspect, HandleState::held}));
  EXPECT_NO_THROW(held.check());
  EXPECT_FALSE(rival.lock("a")->try_acquire());
  EXPECT_FALSE(held.release());
}

// Nobody is told of the break: no reset, no end of the connection.
TEST_P(LinkContract, ASilenceShorterThanTheLeaseIsSuspectAndThenHeldAgain) {
  auto manager = proxied();
  auto held = manager.lock("a")->acquire();
  Told told(held);
  proxy_->hold(Direction::to_client, true);
  ASSERT_TRUE(told.wait_for(HandleState::suspect));
  EXPECT_FALSE(held.stop_token().stop_requested());
  proxy_->hold(Direction::to_client, false);
  ASSERT_TRUE(told.wait_for(HandleState::held));
  for (const auto state : told.all()) EXPECT_NE(state, HandleState::lost);
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
    Told told(held);
    *armed = broken;  // the next request: a renewal
    ASSERT_TRUE(eventually(patience(), [&] { return !*armed; }));
    EXPECT_TRUE(is_renewed(held));
    for (const auto state : told.all()) EXPECT_NE(state, HandleState::lost);
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
