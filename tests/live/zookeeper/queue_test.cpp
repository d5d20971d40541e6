// SPDX-License-Identifier: Apache-2.0
//
// What the lock costs on the wire, and who is let in when: requests, round trips and notifications
// are counted at a proxy in front of a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testkit/servers/zookeeper.hpp"
#include "testkit/zookeeper_frames.hpp"
#include "tests/live/zookeeper/support.hpp"
#include "tests/support/waiters.hpp"

namespace dlock::testkit {
namespace {

using Mode = zookeeper::Client::Mode;

constexpr const char* kUuid = "01234567-89ab-cdef-0123-456789abcdef";

class ZooKeeperQueue : public testing::Test {
 protected:
  void SetUp() override { proxy_.emplace(server_.port(), frames_.filter()); }
  LockManager direct() {
    return open_zookeeper(url_of({server_.port()}, "/app?session_timeout=5s"));
  }
  LockManager proxied() {
    return open_zookeeper(url_of({proxy_->port()}, "/app?session_timeout=5s"));
  }

  ZooKeeperServer& server_ = shared_server();
  ZooKeeperFrames frames_;
  std::optional<FaultProxy> proxy_;
};

TEST_F(ZooKeeperQueue, UncontendedIsOneRoundTripEachWay) {
  auto locks = proxied();
  auto lock = locks.lock("orders/42");
  lock->acquire().release();  // connects, and makes the lock's node
  frames_.clear();

  auto held = lock->acquire();
  EXPECT_EQ(frames_.round_trips(), 1U);
  EXPECT_EQ(frames_.requests(opcode::create2), 1U);
  EXPECT_EQ(frames_.requests(opcode::get_children2), 1U);
  EXPECT_TRUE(held.token().has_value());

  frames_.clear();
  EXPECT_FALSE(held.release());
  EXPECT_EQ(frames_.requests(opcode::remove), 1U);
  EXPECT_EQ(frames_.round_trips(), 1U);
}

/// Locks and unlocks until it did so without a listing; false: it never does.
bool is_known_alone(DistributedLock& lock, ZooKeeperFrames& frames) {
  return eventually(patience(), [&] {
    frames.clear();
    lock.acquire().release();
    return frames.requests(opcode::get_children2) == 0;
  });
}

TEST_F(ZooKeeperQueue, WhoIsAloneAsksForNoListing) {
  auto locks = proxied();
  auto lock = locks.lock("orders/42");
  ASSERT_TRUE(is_known_alone(*lock, frames_));
  frames_.clear();
  auto held = lock->acquire();
  EXPECT_EQ(frames_.requests(opcode::create2), 1U);
  EXPECT_EQ(frames_.round_trips(), 1U);
  held.release();
}

TEST_F(ZooKeeperQueue, WhoWasAloneSeesWhoCameSince) {
  auto locks = proxied();
  auto others = direct();
  auto lock = locks.lock("orders/42");
  ASSERT_TRUE(is_known_alone(*lock, frames_));
  auto other = others.lock("orders/42")->acquire();
  frames_.clear();
  EXPECT_FALSE(lock->try_acquire());
  EXPECT_EQ(frames_.requests(opcode::get_children2), 1U);
  other.release();
  EXPECT_EQ(lock->acquire().state(), HandleState::held);
}

TEST_F(ZooKeeperQueue, WhoWasAloneSeesWhoWaitedBehindIt) {
  auto locks = proxied();
  auto others = direct();
  auto lock = locks.lock("orders/42");
  ASSERT_TRUE(is_known_alone(*lock, frames_));
  auto held = lock->acquire();
  auto waiting = acquire_later(others.lock("orders/42"));
  ASSERT_TRUE(
      eventually(patience(), [&] { return locks.status("orders/42").waiting.size() == 1; }));
  held.release();
  auto next = waiting.get();
  EXPECT_FALSE(lock->try_acquire());
  next.release();
}

TEST_F(ZooKeeperQueue, WhoWasAloneSeesALockThatWasMadeAnew) {
  auto locks = proxied();
  auto others = direct();
  auto lock = locks.lock("orders/42");
  ASSERT_TRUE(is_known_alone(*lock, frames_));
  BareClient cleaner(server_.port());
  ASSERT_TRUE(cleaner.remove("/app/orders/42"));
  auto other = others.lock("orders/42")->acquire();
  EXPECT_FALSE(lock->try_acquire());
  other.release();
}

bool ready(std::future<LockHandle>& handle, std::chrono::milliseconds within_time = 0ms) {
  return handle.wait_for(within_time) == std::future_status::ready;
}

TEST_F(ZooKeeperQueue, HandOverBehindAPlainNodeNeedsNoListing) {
  auto first = direct();
  auto second = proxied();
  second.connect();
  auto held = first.lock("orders/42")->acquire();
  frames_.clear();
  auto waiting = acquire_later(second.lock("orders/42"));
  // It waits as soon as the server has answered its question after the node before it.
  ASSERT_TRUE(eventually(patience(), [&] { return frames_.replies(opcode::get_data) == 2; }));
  EXPECT_EQ(frames_.requests(opcode::get_children2), 1U);
  frames_.clear();
  held.release();
  auto next = waiting.get();
  EXPECT_EQ(frames_.notifications(), 1U);
  EXPECT_EQ(frames_.requests(opcode::get_children2), 0U);
  EXPECT_EQ(frames_.requests(opcode::sync), 0U);
  EXPECT_EQ(next.state(), HandleState::held);
  next.release();
}

TEST_F(ZooKeeperQueue, F58_AWriterThatStepsDownToAReaderIsNotPassed) {
  auto locks = proxied();
  auto lock = locks.lock("rw");
  lock->acquire().release();
  BareClient curator(server_.port());
  const auto prefix = std::string("/app/rw/_c_") + kUuid;
  const auto writer = curator.create(prefix + "-__WRIT__");
  ASSERT_FALSE(writer.empty());
  frames_.clear();
  auto waiting = acquire_later(lock);
  ASSERT_TRUE(eventually(patience(), [&] { return frames_.replies(opcode::get_data) == 2; }));
  // The reader gets the writer's digits.
  const auto digits = writer.substr(writer.size() - 10);
  const auto reader = curator.create(prefix + "-__READ__" + digits, {}, Mode::persistent);
  ASSERT_FALSE(reader.empty());
  ASSERT_TRUE(curator.remove(writer));
  // It looks again, sees the reader and waits for it.
  ASSERT_TRUE(eventually(patience(), [&] { return frames_.replies(opcode::get_data) == 3; }));
  EXPECT_EQ(frames_.requests(opcode::get_children2), 2U);
  EXPECT_FALSE(ready(waiting));
  ASSERT_TRUE(curator.remove(reader));
  waiting.get().release();
}

TEST_F(ZooKeeperQueue, ReadersHaveCuratorsNodesAndOneRoundTripEachWay) {
  auto locks = proxied();
  auto lock = locks.lock("rw");
  lock->acquire().release();
  BareClient eye(server_.port());
  const auto only_child = [&] {
    const auto children = eye.children("/app/rw");
    EXPECT_EQ(children.size(), 1U);
    return children.empty() ? std::string() : children.front();
  };
  frames_.clear();
  auto first = lock->acquire({.mode = dlock::Mode::shared});
  EXPECT_EQ(frames_.round_trips(), 1U);
  EXPECT_THAT(only_child(), testing::MatchesRegex("_c_[0-9a-f-]{36}-__READ__[0-9]{10}"));
  frames_.clear();
  auto second = lock->acquire({.mode = dlock::Mode::shared});
  EXPECT_EQ(frames_.round_trips(), 1U) << "beside another reader, too";
  EXPECT_FALSE(first.release());
  EXPECT_FALSE(second.release());

  auto writer = lock->acquire();
  const auto node = only_child();
  EXPECT_THAT(node, testing::HasSubstr("-lock-"));
  frames_.clear();
  EXPECT_FALSE(writer.downgrade());
  EXPECT_EQ(frames_.requests(opcode::multi), 1U);
  EXPECT_THAT(only_child(), testing::EndsWith("-__READ__" + node.substr(node.size() - 10)));
  EXPECT_EQ(locks.status("rw").token, writer.token()) << "which is not that of the node's birth";
  locks.evict("rw", writer.token().value(), {.at_once = true});
  EXPECT_TRUE(eventually(patience(), [&] { return writer.state() == HandleState::lost; }));

  auto writes =
      open_zookeeper(url_of({server_.port()}, "/app?session_timeout=5s&exclusive_node=write"));
  auto held = writes.lock("rw")->acquire();
  EXPECT_THAT(only_child(), testing::MatchesRegex("_c_[0-9a-f-]{36}-__WRIT__[0-9]{10}"));
  EXPECT_FALSE(lock->try_acquire()) << "however each calls its own";
}

TEST_F(ZooKeeperQueue, ANodeReplacedByASealIsNotPassed) {
  auto locks = proxied();
  auto lock = locks.lock("sealed");
  lock->acquire().release();
  BareClient coordinator(server_.port());
  const auto mover = coordinator.create(std::string("/app/sealed/_c_") + kUuid + "-move-lock-");
  ASSERT_FALSE(mover.empty());
  frames_.clear();
  auto waiting = acquire_later(lock);
  ASSERT_TRUE(eventually(patience(), [&] { return frames_.replies(opcode::get_data) == 2; }));
  const auto seal = coordinator.create(
      std::string("/app/sealed/") + kUuid + "-lock--0000000000",
      "dlock-move1 MOVED gen=17.1 target=redis floor=17 max_lease_ms=30000 plan=p "
      "id=0123456789abcdef since_ms=0",
      Mode::persistent);
  ASSERT_FALSE(seal.empty());
  ASSERT_TRUE(coordinator.remove(mover));
  const auto error_of = [](const auto& call) {
    try {
      call();
    } catch (const LockError& error) {
      return error.code();
    }
    return error_code();
  };
  EXPECT_EQ(error_of([&] { waiting.get(); }), errc::moving);
  EXPECT_EQ(frames_.requests(opcode::get_children2), 2U);
  EXPECT_EQ(error_of([&] { (void)locks.lock("sealed")->try_acquire(); }), errc::moving);
  const auto status = locks.status("sealed");
  EXPECT_FALSE(status.held);
  EXPECT_THAT(status.notes, testing::Contains(testing::HasSubstr("sealed")));
  ASSERT_TRUE(coordinator.remove(seal));
  lock->acquire().release();
}

TEST_F(ZooKeeperQueue, AWaiterWhoseNodeIsTakenAwayQueuesUpAgain) {
  auto first = direct();
  auto second = proxied();
  second.connect();
  frames_.clear();
  auto held = first.lock("orders/42")->acquire();
  auto waiting = acquire_later(second.lock("orders/42"));
  BareClient operator_client(server_.port());
  std::string theirs;
  ASSERT_TRUE(eventually(patience(), [&] {
    for (const auto& waiter : first.status("orders/42").waiting) {
      theirs = "/app/orders/42/_c_" + waiter.id;
    }
    return !theirs.empty() && frames_.replies(opcode::get_data) == 2;
  }));
  frames_.clear();
  for (const auto& child : operator_client.children("/app/orders/42")) {
    if (("/app/orders/42/" + child).starts_with(theirs)) {
      ASSERT_TRUE(operator_client.remove("/app/orders/42/" + child));
    }
  }
  ASSERT_TRUE(eventually(patience(), [&] { return frames_.replies(opcode::create2) == 1; }));
  EXPECT_FALSE(ready(waiting));
  held.release();
  waiting.get().release();
}

TEST_F(ZooKeeperQueue, NamesMayNest) {
  auto locks = direct();
  auto a = locks.lock("a")->try_acquire();
  auto b = locks.lock("a/b")->try_acquire();
  auto c = locks.lock("a/1700000000")->try_acquire();
  auto d = locks.lock("a/_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000")->try_acquire();
  EXPECT_TRUE(a && b && c && d);
  EXPECT_FALSE(locks.lock("a")->try_acquire().has_value());
  EXPECT_EQ(locks.list("a").size(), 4U);
}

TEST_F(ZooKeeperQueue, F51_OneReleaseWakesOneOfAHundredWaiters) {
  constexpr int kWaiters = 100;
  auto holder = direct();
  auto waiters = proxied();
  waiters.connect();
  auto held = holder.lock("busy")->acquire();
  frames_.clear();

  ManyWaiters many(waiters.lock("busy"), kWaiters);
  // Each has asked after its own node and the one before it.
  ASSERT_TRUE(eventually(patience(), [&] {
    return frames_.replies(opcode::get_data) >= std::uint64_t{2} * kWaiters;
  }));
  const auto listings = frames_.requests(opcode::get_children2);
  EXPECT_EQ(frames_.notifications(), 0U);
  held.release();
  for (int i = 0; i < kWaiters; ++i) {
    auto next = many.take();
    // One for each node that went: the holder's from before, and those that released since.
    EXPECT_EQ(frames_.notifications(), static_cast<std::uint64_t>(i) + 1);
    next.release();
  }
  // Who stands behind a waiter of his own process knows when that one is first: nobody lists again.
  EXPECT_EQ(frames_.requests(opcode::get_children2), listings);
  EXPECT_TRUE(eventually(patience(), [&] { return watches_of_locks(server_) == 0; }))
      << server_.four_letter("wchp");
}

TEST_F(ZooKeeperQueue, F52_WaitersThatGiveUpLeaveNoWatch) {
  auto holder = direct();
  auto waiters = proxied();
  auto held = holder.lock("busy")->acquire();
  auto lock = waiters.lock("busy");
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(lock->try_acquire().has_value());
    error_code ec;
    EXPECT_FALSE(lock->try_acquire({.wait = 3ms}, {}, ec).has_value());
  }
  // The holder's own, and nothing else. The last to give up may not have got as far as its watch:
  // its node goes in the background.
  EXPECT_TRUE(eventually(patience(), [&] {
    return holder.status("busy").waiting.empty() && watches_of_locks(server_) == 1;
  })) << server_.four_letter("wchp");
  held.release();
  EXPECT_TRUE(eventually(patience(), [&] { return watches_of_locks(server_) == 0; }));
}

TEST_F(ZooKeeperQueue, F52_AWatchGivenUpWhileDisconnectedDoesNotComeBack) {
  auto holder = direct();
  auto waiters = proxied();
  waiters.connect();
  frames_.clear();
  auto held = holder.lock("busy")->acquire();
  auto waiting = std::async(std::launch::async, [lock = waiters.lock("busy")] {
    error_code ec;
    EXPECT_FALSE(lock->try_acquire({.wait = 2s}, {}, ec));
    return ec;
  });
  ASSERT_TRUE(eventually(patience(), [&] { return frames_.replies(opcode::get_data) == 2; }));
  proxy_->refuse(true);
  proxy_->drop_all();
  EXPECT_EQ(waiting.get(), errc::unavailable);
  proxy_->refuse(false);
  EXPECT_TRUE(eventually(patience(), [&] {
    return holder.status("busy").waiting.empty() && watches_of_locks(server_) == 1;
  })) << server_.four_letter("wchp");
  held.release();
}

}  // namespace
}  // namespace dlock::testkit
