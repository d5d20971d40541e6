// SPDX-License-Identifier: Apache-2.0
//
// A release that gives the lock to the next in line itself, and where it only wakes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "testkit/process.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

constexpr auto kProbation = 1000ms;

class RedisHanded : public RedisTest {
 protected:
  /// Everybody who waits listens, and a release may hand the lock to so many.
  bool ready(long waiters, const std::string& lock = "dlock:{x}") {
    return eventually(patience(), [&] {
      const auto alive = client().ask({"HVALS", lock + "%alive"});
      long flagged = 0;
      for (const auto& item : alive.items) flagged += item.text.ends_with(" kind=handed") ? 1 : 0;
      const auto here = client().ask({"KEYS", "dlock:here%*"}).items.size();
      const auto listening = client().ask({"PUBSUB", "CHANNELS", "dlock:wake:*"}).items.size();
      return flagged == waiters && here > 0 && listening > 0;
    });
  }
  static std::chrono::milliseconds left(const LockHandle& held) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        held.remaining().value_or(Duration::max()));
  }
};

TEST_F(RedisHanded, TheNextHasItForAProbationAndThenForALease) {
  auto holder = open();
  auto next = open("&poll=30s");
  const auto hand_over = [&] {
    auto held = holder.lock("x")->acquire();
    auto waiting = acquire_later(next.lock("x"));
    EXPECT_TRUE(ready(1));
    held.release();
    return waiting.get();
  };
  // Who has just begun to listen looks once more, and that may find the lock given to it.
  EXPECT_FALSE(hand_over().release());
  auto got = hand_over();
  EXPECT_LE(left(got), kProbation);
  const auto value = client().ask({"GET", "dlock:{x}"}).text;
  EXPECT_TRUE(value.starts_with(std::to_string(*got.token()) + ":")) << value;
  EXPECT_EQ(client().ask({"GET", "dlock:{x}%fence"}).text, std::to_string(*got.token()));
  EXPECT_EQ(client().ask({"EXISTS", "dlock:{x}%next", "dlock:{x}%queue"}).integer, 0);
  EXPECT_TRUE(eventually(patience(), [&] { return left(got) > 20s; })) << "it was confirmed";
  EXPECT_FALSE(got.release());
}

TEST_F(RedisHanded, AGrantInALineTakesSoManyCommands) {
  constexpr long kLine = 12;
  auto holder = open();
  auto held = holder.lock("x")->acquire();
  auto many = open("&poll=30s");
  auto first = acquire_later(many.lock("x"));
  ASSERT_TRUE(ready(1));
  const std::vector<std::string> kinds{"zadd", "hset", "zrank", "zrange", "hget",   "zrem",
                                       "hdel", "del",  "mget",  "ping",   "publish"};
  const auto counts = [&] {
    std::vector<long> all;
    for (const auto& kind : kinds) all.push_back(client().calls(kind));
    return all;
  };
  const auto grown = [&](const std::vector<long>& before) {
    auto all = counts();
    for (std::size_t i = 0; i < all.size(); ++i) all[i] -= before[i];
    return all;
  };
  auto before = counts();
  std::vector<std::future<LockHandle>> line;
  for (long i = 1; i < kLine; ++i) line.push_back(acquire_later(many.lock("x")));
  ASSERT_TRUE(ready(kLine));
  const long come = kLine - 1;
  EXPECT_THAT(grown(before), testing::ElementsAre(come, come, come, 0, 0, 0, 0, 0, come, 0, 0));

  // Who leaves has others behind it, but the last. They come in the order of the queue.
  before = counts();
  held.release();
  first.get().release();
  for (long given = 1; given < kLine; ++given) {
    const auto next = [&] {
      return std::find_if(line.begin(), line.end(), [](const std::future<LockHandle>& one) {
        return one.valid() && one.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      });
    };
    ASSERT_TRUE(eventually(patience(), [&] { return next() != line.end(); }));
    next()->get().release();
  }
  EXPECT_THAT(grown(before), testing::ElementsAre(0, 0, 0, kLine + 1, kLine, kLine, kLine, 1,
                                                  kLine + 1, kLine, kLine));
}

// As after a failover to a server on which its owner still waits: others had it since.
TEST_F(RedisHanded, AGrantOfTheSameOwnerUnderAnotherTokenIsNotItsOwn) {
  auto locks = open("&lease=1s");
  auto held = locks.lock("x")->acquire();
  const auto value = client().ask({"GET", "dlock:{x}"}).text;
  const auto owner = value.substr(value.find(':'));
  client().ask({"SET", "dlock:{x}", std::to_string(*held.token() + 1) + owner, "PX", "60000"});
  StateLog log;
  log.record(held);
  ASSERT_TRUE(log.wait_for(HandleState::lost, within(5s)));
  EXPECT_NE(held.loss_reason(), LossReason::expired) << "the renewal was told";
}

TEST_F(RedisHanded, ABreakHandsItOver) {
  auto holder = open();
  auto next = open("&poll=30s");
  auto held = holder.lock("x")->acquire();
  auto waiting = acquire_later(next.lock("x"));
  ASSERT_TRUE(ready(1));
  holder.evict("x", *held.token(), {.at_once = true});
  auto got = waiting.get();
  EXPECT_GT(*got.token(), *held.token());
  EXPECT_LE(left(got), kProbation);
  EXPECT_EQ(held.release(), errc::lock_lost);
}

TEST_F(RedisHanded, ATokenThatIsTooLowIsNotBelieved) {
  auto next = open();
  client().ask({"SET", "dlock:{x}%fence", "8000000000000000"});
  EXPECT_FALSE(next.lock("x")->acquire().release());
  client().ask({"DEL", "dlock:{x}%fence"});
  auto holder = open();
  auto held = holder.lock("x")->acquire();
  ASSERT_LT(*held.token(), 8000000000000000U);
  auto waiting = acquire_later(next.lock("x"));
  ASSERT_TRUE(ready(1));
  held.release();
  EXPECT_GT(*waiting.get().token(), 8000000000000001U);
}

// It had the lock as far as the server knows, and comes back when another has it.
TEST_F(RedisHanded, ASuccessorThatIsStoppedDoesNotBelieveWhenItIsBack) {
  auto holder = open();
  auto held = holder.lock("x")->acquire();
  ProcessOptions options;
  options.argv = {DLOCK_REDIS_WAITERS, redis_url(server_.port()), "x", "1"};
  Process stopped(std::move(options));
  ASSERT_TRUE(ready(1));
  ASSERT_TRUE(stopped.pause());
  held.release();
  auto other = holder.lock("x")->try_acquire({.wait = 10s});
  ASSERT_TRUE(other);
  ASSERT_TRUE(stopped.resume());
  // It has looked, and queues again.
  EXPECT_TRUE(eventually(patience(), [&] {
    return client().ask({"ZCARD", "dlock:{x}%queue"}).integer == 1;
  }));
  EXPECT_FALSE(stopped.read_line(Clock::now())) << "it was told that it has the lock";
  EXPECT_TRUE(client().ask({"GET", "dlock:{x}"}).text.starts_with(std::to_string(*other->token())));
  other->release();
  EXPECT_EQ(stopped.read_line(patience()), "granted");
}

TEST_F(RedisHanded, WhereItsKeyIsRefusedTheNextIsWoken) {
  client().ask({"ACL", "SETUSER", "default", "resetkeys", "~dlock:{*"});
  auto holder = open();
  auto next = open("&poll=30s");
  auto held = holder.lock("x")->acquire();
  auto waiting = acquire_later(next.lock("x"));
  ASSERT_TRUE(eventually(patience(), [&] {
    return client().ask({"ZCARD", "dlock:{x}%queue"}).integer == 1 &&
           !client().ask({"PUBSUB", "CHANNELS", "dlock:wake:*"}).items.empty();
  }));
  held.release();
  EXPECT_GT(left(waiting.get()), 20s);
}

// Other clients, which look now and then, would never find it free.
TEST_F(RedisHanded, WhereOtherClientsLockTheNextIsWoken) {
  const std::string rest = "&poll=30s&key=%7Bname%7D";
  auto holder = open(rest);
  auto next = open(rest);
  auto held = holder.lock("x")->acquire();
  auto waiting = acquire_later(next.lock("x"));
  ASSERT_TRUE(eventually(patience(), [&] {
    return client().ask({"ZCARD", "{x}%queue"}).integer == 1 &&
           !client().ask({"PUBSUB", "CHANNELS", "dlock:wake:*"}).items.empty();
  }));
  held.release();
  EXPECT_GT(left(waiting.get()), 20s);
}

// Its connection for messages ends at the grant: it looks when it stands again.
TEST_F(RedisHanded, AMessageThatIsLostIsMadeUpForByALook) {
  auto holder = open();
  auto next = open();
  auto held = holder.lock("x")->acquire();
  auto waiting = acquire_later(next.lock("x"));
  ASSERT_TRUE(ready(1));
  client().ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  held.release();
  ASSERT_EQ(waiting.wait_for(10s), std::future_status::ready);
  auto got = waiting.get();
  EXPECT_TRUE(eventually(patience(), [&] { return left(got) > 20s; }));
  EXPECT_FALSE(got.release());
}

}  // namespace
}  // namespace dlock::testkit
