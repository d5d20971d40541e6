// SPDX-License-Identifier: Apache-2.0
//
// One server, and what happens to holders and waiters when processes die or stop, links break,
// replies are lost and nodes are taken away. Named after the rows of docs/failures.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/live/zookeeper/proxied_server.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ZooKeeperFailure : public ProxiedZooKeeper {
 protected:
  /// A try whose create stays in the proxy while its client comes back on another connection.
  void hold_back_a_create(DistributedLock& lock) {
    frames_.once(FrameKind::request, opcode::create2, Verdict::hold);
    auto trying = std::async(std::launch::async, [&] {
      error_code ec;
      return lock.try_acquire({}, {}, ec).has_value();
    });
    ASSERT_TRUE(eventually(patience(), [&] { return frames_.pending_once() == 0; }));
    proxy_->drop_clients();
    trying.get();
  }
};

TEST_F(ZooKeeperFailure, F63_KilledHolderFreesTheLockWithinItsSessionAndATick) {
  auto locks = direct();
  locks.connect();
  const auto process = holder(server_.port());
  ASSERT_THAT(next_line(*process), HasSubstr("held"));
  auto waiting = std::async(std::launch::async, [&] { return locks.lock("job")->acquire(); });
  const auto killed = BoottimeClock::now();
  process->kill_and_wait();
  auto held = waiting.get();
  const auto after = BoottimeClock::now() - killed;
  // The server hears of the last packet up to half a tick late, and a loaded machine is late too.
  EXPECT_LE(after, kSession + kTick + 300ms);
  held.release();
}

// The session lives, and the last answer before the silence is nearly a session old.
TEST_F(ZooKeeperFailure, AGrantAfterASilentLinkHasHalfOfTheSessionsPatience) {
  auto others = direct();
  auto held = others.lock("job")->acquire();
  auto locks = proxied();
  auto waiting =
      std::async(std::launch::async, [&] { return locks.lock("job")->acquire({.wait = 60s}); });
  BareClient client(server_.port());
  ASSERT_TRUE(eventually(patience(), [&] { return client.children("/app/job").size() == 2; }));
  const auto before = client.children("/app/job");
  for (const auto direction : {Direction::to_server, Direction::to_client}) {
    proxy_->hold(direction, true);
  }
  std::this_thread::sleep_for(kSession * 3 / 4);  // the silence is the test's subject
  EXPECT_FALSE(held.release());
  for (const auto direction : {Direction::to_server, Direction::to_client}) {
    proxy_->hold(direction, false);
  }
  proxy_->drop_clients();
  auto granted = waiting.get();
  ASSERT_TRUE(granted.remaining());
  EXPECT_GE(*granted.remaining(), kSession / 3 - 100ms);
  EXPECT_THAT(before, testing::IsSupersetOf(client.children("/app/job"))) << "the same session";
  EXPECT_FALSE(granted.release());
}

TEST_F(ZooKeeperFailure, F15_HolderStoppedPastItsSessionIsToldFirst) {
  auto locks = direct();
  locks.connect();
  const auto process = holder(server_.port());
  ASSERT_THAT(next_line(*process), HasSubstr("held"));
  process->pause();
  auto next = locks.lock("job")->acquire();
  process->write("check\n");
  process->resume();
  std::vector<std::string> lines;
  while (lines.size() < 2) lines.push_back(next_line(*process));
  EXPECT_THAT(lines, testing::UnorderedElementsAre("lost", testing::StartsWith("state lost")));
  process->write("release\n");
  EXPECT_EQ(next_line(*process), "release: lost");
  EXPECT_EQ(next.state(), HandleState::held);
  EXPECT_FALSE(next.release());
}

TEST_F(ZooKeeperFailure, F15_LossIsToldBeforeTheServerEndsTheSession) {
  auto locks = proxied();
  auto rival = direct();
  rival.connect();
  auto held = locks.lock("job")->acquire();
  StateLog log;
  log.record(held);
  auto waiting = std::async(std::launch::async, [&] {
    auto next = rival.lock("job")->acquire();
    return std::make_pair(BoottimeClock::now(), std::move(next));
  });
  proxy_->refuse(true);
  proxy_->drop_all();
  ASSERT_TRUE(log.wait_for(HandleState::suspect, patience()));
  ASSERT_TRUE(log.wait_for(HandleState::lost, patience()));
  auto [granted, next] = waiting.get();
  EXPECT_LT(log.entries().back().when, granted);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_FALSE(next.release());
}

TEST_F(ZooKeeperFailure, AShortBreakOfTheLinkIsSurvived) {
  auto locks = proxied();
  auto held = locks.lock("job")->acquire();
  StateLog log;
  log.record(held);
  for (int i = 0; i < 5; ++i) {
    const auto connects = frames_.connects();
    proxy_->drop_all();
    ASSERT_TRUE(eventually(patience(), [&] { return frames_.connects() > connects; }));
  }
  ASSERT_TRUE(eventually(patience(), [&] { return held.state() == HandleState::held; }));
  for (const auto& entry : log.entries()) EXPECT_NE(entry.state, HandleState::lost);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(locks.lock("job")->try_acquire().has_value());
}

TEST_F(ZooKeeperFailure, F11_LostCreateReplyIsAdopted) {
  auto locks = proxied();
  auto lock = locks.lock("job");
  lock->acquire().release();
  for (int i = 0; i < 5; ++i) {
    frames_.once(FrameKind::reply, opcode::create2, Verdict::reset);
    const auto started = BoottimeClock::now();
    auto held = lock->acquire({.wait = 20s});
    EXPECT_LT(BoottimeClock::now() - started, kSession);
    BareClient client(server_.port());
    EXPECT_THAT(client.children("/app/job"), SizeIs(1));
    EXPECT_FALSE(held.release());
    EXPECT_THAT(client.children("/app/job"), IsEmpty());
  }
  EXPECT_EQ(frames_.pending_once(), 0U);
}

TEST_F(ZooKeeperFailure, F11_LostReplyToATryLeavesNothing) {
  auto locks = proxied();
  auto rival = direct();
  auto lock = locks.lock("job");
  lock->acquire().release();
  auto held = rival.lock("job")->acquire();
  for (int i = 0; i < 5; ++i) {
    frames_.once(FrameKind::reply, opcode::create2, Verdict::reset);
    error_code ec;
    EXPECT_FALSE(lock->try_acquire({}, {}, ec).has_value());
  }
  held.release();
  const auto started = BoottimeClock::now();
  auto next = rival.lock("job")->acquire({.wait = 20s});
  EXPECT_LT(BoottimeClock::now() - started, kSession);
}

TEST_F(ZooKeeperFailure, F11_ACreateThatArrivesLateIsGoneWithinASession) {
  auto locks = proxied();
  auto lock = locks.lock("job");
  lock->acquire().release();
  hold_back_a_create(*lock);
  const auto let_go = BoottimeClock::now();
  proxy_->release_held();
  auto rival = direct();
  auto held = rival.lock("job")->acquire({.wait = 20s});
  EXPECT_LT(BoottimeClock::now() - let_go, kSession + kTick);
}

// The lock is searched for two sessions: a copy that comes after the first searches is found, too.
TEST_F(ZooKeeperFailure, F11_ACreateThatArrivesAfterThreeSearchesIsTakenAway) {
  auto locks = proxied();
  auto lock = locks.lock("job");
  lock->acquire().release();
  hold_back_a_create(*lock);
  const auto searched = frames_.requests(opcode::get_children2);
  ASSERT_TRUE(eventually(patience(),
                         [&] { return frames_.requests(opcode::get_children2) >= searched + 3; }));
  proxy_->release_held();
  BareClient client(server_.port());
  EXPECT_TRUE(eventually(within(kSession), [&] { return client.children("/app/job").empty(); }));
  const auto by_then = frames_.requests(opcode::get_children2);
  ASSERT_TRUE(eventually(patience(),
                         [&] { return frames_.requests(opcode::get_children2) >= by_then + 2; }));
  EXPECT_THAT(client.children("/app/job"), IsEmpty());
}

TEST_F(ZooKeeperFailure, F12_ALinkThatBreaksBeforeTheDeleteLeavesNothing) {
  auto locks = proxied();
  auto rival = direct();
  auto lock = locks.lock("job");
  auto held = rival.lock("job")->acquire();
  error_code ec;
  (void)lock->try_acquire({}, {}, ec);
  frames_.once(FrameKind::request, opcode::remove, Verdict::reset);
  EXPECT_FALSE(lock->try_acquire({}, {}, ec).has_value());
  BareClient client(server_.port());
  EXPECT_TRUE(
      eventually(within(kSession), [&] { return client.children("/app/job").size() == 1; }));
  held.release();
}

TEST_F(ZooKeeperFailure, ALostReleaseReplyIsNotALoss) {
  auto locks = proxied();
  auto lock = locks.lock("job");
  auto held = lock->acquire();
  frames_.once(FrameKind::reply, opcode::remove, Verdict::reset);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(frames_.pending_once(), 0U);
  EXPECT_TRUE(lock->try_acquire().has_value());
}

TEST_F(ZooKeeperFailure, F32_ANodeDeletedByHandIsToldWithinASecond) {
  auto locks = direct();
  auto held = locks.lock("job")->acquire();
  StateLog log;
  log.record(held);
  BareClient client(server_.port());
  const auto children = client.children("/app/job");
  ASSERT_THAT(children, SizeIs(1));
  const auto deleted = BoottimeClock::now();
  ASSERT_TRUE(client.remove("/app/job/" + children.front()));
  ASSERT_TRUE(log.wait_for(HandleState::lost, patience()));
  EXPECT_EQ(log.entries().back().reason, LossReason::removed);
  EXPECT_LE(log.entries().back().when - deleted, 1s);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_TRUE(locks.lock("job")->try_acquire().has_value());
}

TEST_F(ZooKeeperFailure, ABrokenLockIsToldAsEvicted) {
  auto locks = proxied();
  locks.connect();
  frames_.clear();
  auto held = locks.lock("job")->acquire();
  ASSERT_TRUE(eventually(patience(), [&] { return frames_.replies(opcode::get_data) == 1; }));
  StateLog log;
  log.record(held);
  const auto token = *held.token();
  EXPECT_THROW(locks.evict("job", token + 1, {.at_once = true}), LockError);
  EXPECT_THROW(locks.evict("nobody", 1, {.at_once = true}), LockError);
  EXPECT_EQ(held.state(), HandleState::held);
  locks.evict("job", token, {.at_once = true});
  ASSERT_TRUE(log.wait_for(HandleState::lost, patience()));
  EXPECT_EQ(log.entries().back().reason, LossReason::broken);
  EXPECT_EQ(held.release(), errc::lock_lost);
}

TEST_F(ZooKeeperFailure, ADataChangeOfTheHoldersNodeIsNoLoss) {
  auto locks = proxied();
  locks.connect();
  frames_.clear();
  auto held = locks.lock("job")->acquire();
  ASSERT_TRUE(eventually(patience(), [&] { return frames_.replies(opcode::get_data) == 1; }));
  const auto children = BareClient(server_.port()).children("/app/job");
  ASSERT_THAT(children, SizeIs(1));
  // As Curator's Revoker does.
  BareClient revoker(server_.port());
  revoker.set("/app/job/" + children.front(), "__REVOKE__");
  ASSERT_TRUE(eventually(patience(), [&] { return frames_.replies(opcode::get_data) >= 2; }));
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_FALSE(held.release());
}

TEST_F(ZooKeeperFailure, F16_WaitersGoOnAfterTheServerRestarts) {
  auto first = direct();
  auto second = direct();
  for (int i = 0; i < 3; ++i) {
    auto held = first.lock("job")->acquire({.wait = 60s});
    auto waiting =
        std::async(std::launch::async, [&] { return second.lock("job")->acquire({.wait = 60s}); });
    server_.kill9();
    server_.start();
    const auto healed = BoottimeClock::now();
    held.release();
    auto next = waiting.get();
    // The end of the old session on the server; a second until we have found it again, and one for
    // a busy machine.
    EXPECT_LE(BoottimeClock::now() - healed, kSession + kTick + 2s);
    next.release();
  }
}

TEST_F(ZooKeeperFailure, TokensRiseThroughALostParent) {
  auto locks = direct();
  BareClient client(server_.port());
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    auto held = locks.lock("job")->acquire();
    EXPECT_GT(*held.token(), last);
    last = *held.token();
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(client.remove("/app/job"));  // as the server collects an empty container
  }
}

TEST_F(ZooKeeperFailure, F67_StatusShowsHolderSessionAndAge) {
  auto locks = direct();
  auto held = locks.lock("job")->acquire();
  auto waiting =
      std::async(std::launch::async, [&] { return locks.lock("job")->acquire({.wait = 60s}); });
  LockStatus status;
  ASSERT_TRUE(eventually(patience(), [&] {
    status = locks.status("job");
    return status.waiting.size() == 1;
  }));
  EXPECT_TRUE(status.held);
  EXPECT_EQ(status.token, held.token());
  ASSERT_TRUE(status.owner.has_value());
  EXPECT_EQ(status.owner->pid, ::getpid());
  EXPECT_TRUE(status.held_for.has_value());
  EXPECT_EQ(status.remaining, kSession);
  EXPECT_THAT(status.notes, testing::Contains(HasSubstr("session 0x")));
  EXPECT_EQ(locks.list().size(), 1U);
  EXPECT_THAT(locks.list("other"), IsEmpty());
  held.release();
  waiting.get().release();
  EXPECT_FALSE(locks.status("job").held);
  EXPECT_THAT(locks.list(), IsEmpty());
}

// The library's own way round its list leaves out every other server of an even number.
TEST_F(ZooKeeperFailure, EveryServerOfTheListIsTried) {
  std::vector<std::unique_ptr<FaultProxy>> proxies;
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < 4; ++i) {
    proxies.push_back(std::make_unique<FaultProxy>(server_.port()));
    ports.push_back(proxies.back()->port());
  }
  auto locks = open_zookeeper(url_of(ports, "/app?session_timeout=2s&connect_timeout=30s"));
  for (std::size_t only = 0; only < 8; ++only) {
    for (std::size_t i = 0; i < ports.size(); ++i) proxies[i]->refuse(i != only % ports.size());
    for (const auto& proxy : proxies) proxy->drop_all();
    auto held = locks.lock("job")->acquire({.wait = 30s});
    EXPECT_EQ(held.state(), HandleState::held);
    EXPECT_EQ(proxies[only % ports.size()]->stats().open, 1U);
    EXPECT_FALSE(held.release());
  }
}

}  // namespace
}  // namespace dlock::testkit
