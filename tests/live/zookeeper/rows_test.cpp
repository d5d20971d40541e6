// SPDX-License-Identifier: Apache-2.0
//
// More failures that users met, on one real server: silence, late replies, waiters that slept
// through their session, cancels at any moment, request ids at their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "testkit/temp_dir.hpp"
#include "testkit/wall_clock.hpp"
#include "tests/live/zookeeper/proxied_server.hpp"

namespace dlock::testkit {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ZooKeeperRows : public ProxiedZooKeeper {};

TEST_F(ZooKeeperRows, F05_CancelledAcquiresLeaveNoHeartbeatAndNoNode) {
  auto locks = proxied();
  auto lock = locks.lock("job");
  lock->acquire().release();
  std::mt19937 dice(5);
  int granted = 0;
  for (int i = 0; i < 500; ++i) {
    std::stop_source stop;
    std::thread stopper([&stop, moment = dice() % 700] {
      std::this_thread::sleep_for(std::chrono::microseconds(moment));
      stop.request_stop();
    });
    error_code ec;
    auto held = lock->acquire({.wait = 20s}, stop.get_token(), ec);
    stopper.join();
    if (held) {
      ++granted;
      held.release();
    }
  }
  BareClient client(server_.port());
  EXPECT_TRUE(eventually(within(kSession), [&] { return client.children("/app/job").empty(); }));
  // A holder's sign of life is a `multi`, each quarter of the session.
  const auto beats = frames_.requests(opcode::multi);
  EXPECT_FALSE(
      eventually(within(kSession), [&] { return frames_.requests(opcode::multi) > beats; }));
  EXPECT_THAT(client.children("/app/job"), IsEmpty());
  std::printf("%d of 500 were granted\n", granted);
}

TEST_F(ZooKeeperRows, F06_ASilentServerIsToldByTheDeadline) {
  auto locks = direct();
  auto held = locks.lock("job")->acquire();
  StateLog log;
  log.record(held);
  server_.pause();
  const auto deadline = BoottimeClock::now() + *held.remaining();
  ASSERT_TRUE(log.wait_for(HandleState::lost, patience()));
  const auto told = log.entries().back();
  // A heartbeat that was answered as the server stopped may have moved it on by a little.
  EXPECT_LE(told.when, deadline + 300ms);
  server_.resume();
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_TRUE(locks.lock("job")->try_acquire({.wait = 20s}));
  int losses = 0;
  for (const auto& entry : log.entries()) losses += entry.state == HandleState::lost ? 1 : 0;
  EXPECT_EQ(losses, 1);
}

TEST_F(ZooKeeperRows, F27_ADelayedReplyShortensTheLease) {
  static constexpr auto kDelay = 150ms;
  auto locks = proxied();
  auto lock = locks.lock("job");
  lock->acquire().release();
  frames_.set_rule([this](const Frame& frame) {
    if (frame.kind == FrameKind::request && frame.opcode == opcode::create2) {
      proxy_->delay(Direction::to_client, kDelay);
    }
    return Verdict::forward;
  });
  auto held = lock->acquire({.wait = 20s});
  EXPECT_LE(held.remaining().value_or(1h), kSession * 2 / 3 - kDelay);
  proxy_->delay(Direction::to_client, 0ms);
}

// A waiter sleeps through its session and through its turn.
TEST_F(ZooKeeperRows, F84_AWaiterWhoseSessionEndedHoldsNothing) {
  auto first = direct();
  auto second = direct();
  second.connect();
  auto held = first.lock("job")->acquire();
  const auto waiter = holder(server_.port());
  BareClient client(server_.port());
  ASSERT_TRUE(eventually(patience(), [&] { return client.children("/app/job").size() == 2; }));
  waiter->pause();
  ASSERT_TRUE(eventually(patience(), [&] { return client.children("/app/job").size() == 1; }))
      << "the server has ended its session";
  EXPECT_FALSE(held.release());
  auto next = second.lock("job")->acquire();
  waiter->resume();
  ASSERT_TRUE(eventually(patience(), [&] { return client.children("/app/job").size() == 2; }))
      << "it waits anew";
  EXPECT_EQ(waiter->read_line(within(300ms)), std::nullopt) << "and says nothing of holding";
  EXPECT_EQ(next.state(), HandleState::held);
  const auto token = *next.token();
  EXPECT_FALSE(next.release());
  const auto line = next_line(*waiter);
  ASSERT_THAT(line, HasSubstr("held ")) << waiter->collected_stderr();
  EXPECT_GT(std::stoull(line.substr(5)), token);
}

// The C client counts its requests from the wall clock, in seconds: set so that the count passes
// the end of the positive numbers, and later those that the protocol has for itself (-8 to -1),
// which the library does not leave out: what is asked by such a number is never answered, or the
// answer is taken for one about the session, which may be over by that. A holder is told, then.
TEST_F(ZooKeeperRows, F90_RequestIdsPassTheirEnd) {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  for (const auto end : {std::int64_t{1} << 31, std::int64_t{1} << 32}) {
    SCOPED_TRACE(end);
    frames_.clear();
    const TempDir clock_folder("dlock-clock");
    WallClock clock(DLOCK_CLOCK_SHIM, clock_folder.path() / "clock");
    clock.be_wrong_by(std::chrono::seconds(end) - now - 60s);
    ProcessOptions options;
    // Each of those that are never answered costs three tenths of a session; a busy machine's own
    // hiccups are to be short beside that.
    options.argv = {DLOCK_ZOOKEEPER_PROCESS, url_of({proxy_->port()}, "/app?session_timeout=5s"),
                    "job"};
    options.env = clock.environment();
    Process client(std::move(options));
    ASSERT_THAT(next_line(client), HasSubstr("held")) << client.collected_stderr();
    client.write("cycle\ncheck\nrelease\n");
    std::vector<std::string> lines;
    while (lines.empty() || (!lines.back().starts_with("release") && lines.back() != "(nothing)")) {
      lines.push_back(next_line(client));
    }
    EXPECT_THAT(lines, testing::Contains("cycled")) << client.collected_stderr();
    const auto told = testing::Contains(HasSubstr("state lost"));
    if (end == std::int64_t{1} << 31 || testing::Value(lines, testing::Not(told))) {
      EXPECT_THAT(lines, testing::Contains("ok"));
      EXPECT_EQ(lines.back(), "released");
      EXPECT_THAT(lines, testing::Not(told));
    } else {
      // The answer that was taken for one about the session, or, beside many others on this
      // machine, the lease's end before it: the one number left then came too late.
      EXPECT_THAT(lines, testing::Contains(testing::AnyOf(HasSubstr("state lost session_ended"),
                                                          HasSubstr("state lost expired"))));
      EXPECT_EQ(lines.back(), "release: lost");
    }
    direct().lock("job")->acquire({.wait = 20s}).release();
    bool before = false;
    bool after = false;
    for (const auto& frame : frames_.log()) {
      const auto xid = static_cast<std::uint32_t>(frame.xid);
      const auto last = static_cast<std::uint32_t>(end - 1);
      before = before || (frame.kind == FrameKind::request && last - xid < 100);
      after = after || (before && xid - last - 1 < 100);
    }
    EXPECT_TRUE(before);
    EXPECT_TRUE(after);
  }
}

}  // namespace
}  // namespace dlock::testkit
