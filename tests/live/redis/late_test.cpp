// SPDX-License-Identifier: Apache-2.0
//
// Nothing is left behind: lost replies, requests that arrive late, renewals after the end. Rows of
// docs/failures.md by their numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <mutex>
#include <thread>

#include "backends/redis/scripts/scripts.hpp"
#include "testkit/process.hpp"
#include "tests/live/redis/support.hpp"

namespace dlock::testkit {
namespace {

class RedisLate : public RedisTest {
 protected:
  /// What clients do from now on, but for the clients of this test.
  class Watch {
   public:
    explicit Watch(std::uint16_t port) : client_(port) { client_.ask({"MONITOR"}); }
    /// The first command seen with `word` in it; empty if none comes in that time.
    std::string first(std::chrono::milliseconds during, std::string_view word = {}) {
      const auto end = within(during);
      while (auto line = client_.next(end)) {
        const bool other = line->text.find("\"EXISTS\"") == std::string::npos;
        if (other && line->text.find(word) != std::string::npos) return line->text;
      }
      return {};
    }

   private:
    RedisClient client_;
  };
};

/// Passes everything on, but for the next reply to a request with `word` in it.
class ReplySwallower {
 public:
  explicit ReplySwallower(std::string word, Verdict verdict)
      : word_(std::move(word)), verdict_(verdict) {}
  DataHook hook() {
    return [this](Direction direction, ConnectionId connection, std::string_view bytes) {
      const std::lock_guard lock(mutex_);
      if (direction == Direction::to_server) {
        if (armed_ && bytes.find(word_) != std::string_view::npos) target_ = connection;
        return Verdict::forward;
      }
      if (!armed_ || target_ != connection) return Verdict::forward;
      armed_ = false;
      ++swallowed_;
      return verdict_;
    };
  }
  void arm() {
    const std::lock_guard lock(mutex_);
    armed_ = true;
    target_ = 0;
  }
  int swallowed() {
    const std::lock_guard lock(mutex_);
    return swallowed_;
  }

 private:
  const std::string word_;
  const Verdict verdict_;
  std::mutex mutex_;
  bool armed_ = false;
  ConnectionId target_ = 0;
  int swallowed_ = 0;
};

TEST_F(RedisLate, F02_ALateReleaseFreesNobodysLock) {
  FaultProxy proxy(server_.port());
  auto a = open_redis(redis_url(proxy.port(), "&lease=300ms&request_timeout=100ms"));
  auto b = open();
  auto held = a.lock("x")->acquire();
  proxy.refuse(true);
  proxy.drop_all();
  auto next = b.lock("x")->acquire({.wait = 30s});
  EXPECT_EQ(held.state(), HandleState::lost);
  proxy.refuse(false);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_FALSE(b.lock("x")->try_acquire());
  EXPECT_EQ(next.state(), HandleState::held);
  EXPECT_FALSE(next.release());
}

// The server has given it to somebody else, and this holder does not know yet: it asks, and is
// told.
TEST_F(RedisLate, F02_AReleaseOfWhatIsAnothersFreesNothing) {
  auto a = open();
  auto b = open();
  auto held = a.lock("x")->acquire();
  client().ask({"DEL", "dlock:{x}"});
  auto next = b.lock("x")->acquire({.wait = 30s});
  ASSERT_EQ(held.state(), HandleState::held);
  EXPECT_EQ(held.release(), errc::lock_lost);
  EXPECT_EQ(exists("dlock:{x}"), 1);
  EXPECT_FALSE(a.lock("x")->try_acquire());
  EXPECT_FALSE(next.release());
}

TEST_F(RedisLate, F10_ALostReplyLeavesNothingAndDelaysNobody) {
  for (const auto verdict : {Verdict::reset, Verdict::swallow}) {
    FaultProxy proxy(server_.port());
    ReplySwallower swallower("EVALSHA", verdict);
    proxy.on_data(swallower.hook());
    auto locks = open_redis(redis_url(proxy.port(), "&request_timeout=500ms"));
    pass_self_test(locks);
    auto lock = locks.lock("x");
    swallower.arm();
    auto held = lock->acquire({.wait = 20s});  // asked again: it is ours already
    EXPECT_EQ(swallower.swallowed(), 1);
    EXPECT_FALSE(held.release());
    // Given up: withdrawn, although nobody knows whether it was granted.
    swallower.arm();
    EXPECT_THROW(lock->try_acquire(), LockError);
    EXPECT_EQ(swallower.swallowed(), 2);
    EXPECT_TRUE(eventually(within(10s), [&] { return exists("dlock:{x}") == 0; }));
    auto again = lock->try_acquire({.wait = 5s});
    EXPECT_TRUE(again);
  }
}

// The server executes what it received meanwhile when it is resumed.
TEST_F(RedisLate, AWithdrawalOutlivesAServerThatIsStoppedForLongerThanTheLease) {
  auto locks = open("&lease=2s&request_timeout=500ms&connect_timeout=1s");
  locks.connect();
  auto others = open("&lease=2s");
  others.connect();
  server_.pause();
  error_code ec;
  EXPECT_FALSE(locks.lock("x")->acquire({.wait = 1500ms}, {}, ec));
  EXPECT_EQ(ec, errc::unavailable) << ec.message();
  std::this_thread::sleep_for(3s);  // the outage is the test's subject
  server_.resume();
  EXPECT_TRUE(eventually(within(1s), [&] { return bool(others.lock("x")->try_acquire()); }));
  EXPECT_TRUE(eventually(patience(), [&] { return exists("dlock:{x}") == 0; }));
}

TEST_F(RedisLate, F10_ALostReplyToAReleaseIsAskedAgain) {
  FaultProxy proxy(server_.port());
  ReplySwallower swallower("EVALSHA", Verdict::reset);
  proxy.on_data(swallower.hook());
  auto locks = open_redis(redis_url(proxy.port()));
  auto held = locks.lock("x")->acquire();
  swallower.arm();
  EXPECT_FALSE(held.release());
  EXPECT_EQ(exists("dlock:{x}"), 0);
}

// A proxy that keeps a request until all is over, and the connection that it came on.
class RedisLateCopy : public RedisLate {
 protected:
  /// Holds back what `locks` sends on its connection, and lets an acquire run into it.
  void lose_an_acquire(LockManager& locks) {
    pass_self_test(locks);
    const auto asked = client().calls("evalsha");
    old_ = proxy_->connections().front();
    proxy_->hold(old_, Direction::to_server, true);
    EXPECT_THROW(locks.lock("x")->try_acquire(), LockError);
    // Withdrawn on a new connection.
    ASSERT_TRUE(eventually(patience(), [&] { return client().calls("evalsha") >= asked + 2; }));
    ASSERT_EQ(exists("dlock:{x}%fence"), 0) << "no acquire has come through";
  }
  /// The request reaches whoever still reads that connection.
  void deliver() {
    proxy_->hold(old_, Direction::to_server, false);
    ASSERT_TRUE(eventually(patience(), [&] { return proxy_->stats().open == 1; }));
  }

  void SetUp() override {
    RedisLate::SetUp();
    proxy_.emplace(server_.port());
  }
  std::optional<FaultProxy> proxy_;
  ConnectionId old_ = 0;
};

TEST_F(RedisLateCopy, F02_OfAReleaseFreesNobodysLock) {
  client().ask({"ACL", "SETUSER", "default", "-client|kill"});
  auto a = open_redis(redis_url(proxy_->port(), "&request_timeout=300ms"));
  auto held = a.lock("x")->acquire();
  old_ = proxy_->connections().front();
  proxy_->hold(old_, Direction::to_server, true);
  EXPECT_FALSE(held.release());  // asked again on a new connection
  auto b = open();
  auto next = b.lock("x")->acquire({.wait = 30s});
  const auto before = client().calls("evalsha");
  ASSERT_NO_FATAL_FAILURE(deliver());
  EXPECT_GT(client().calls("evalsha"), before) << "it has arrived";
  EXPECT_EQ(exists("dlock:{x}"), 1);
  EXPECT_FALSE(next.release());
}

TEST_F(RedisLateCopy, IsNotReadAfterAReconnect) {
  auto locks = open_redis(redis_url(proxy_->port(), "&request_timeout=300ms"));
  ASSERT_NO_FATAL_FAILURE(lose_an_acquire(locks));
  ASSERT_NO_FATAL_FAILURE(deliver());
  EXPECT_EQ(exists("dlock:{x}"), 0);
  EXPECT_EQ(exists("dlock:{x}%fence"), 0) << "the server had killed the connection";
  EXPECT_TRUE(locks.lock("x")->try_acquire());
}

TEST_F(RedisLateCopy, ChangesNothingWhereNoConnectionMayBeKilled) {
  client().ask({"ACL", "SETUSER", "default", "-client|kill"});
  auto warnings = std::make_shared<WarningLog>();
  auto locks = open_redis(redis_url(proxy_->port(), "&request_timeout=300ms"), warnings);
  ASSERT_NO_FATAL_FAILURE(lose_an_acquire(locks));
  EXPECT_TRUE(eventually(patience(), [&] { return warnings->has("client|kill"); }))
      << warnings->all();
  const auto before = client().calls("evalsha");
  ASSERT_NO_FATAL_FAILURE(deliver());
  EXPECT_GT(client().calls("evalsha"), before) << "it has arrived";
  EXPECT_EQ(exists("dlock:{x}") + exists("dlock:{x}%fence") + exists("dlock:{x}%queue"), 0);
  EXPECT_TRUE(open().lock("x")->try_acquire());
}

// The process that sent it is gone: nobody withdraws it.
TEST_F(RedisLateCopy, ChangesNothingWhenItsSenderIsDead) {
  client().ask({"ACL", "SETUSER", "default", "-client|kill"});
  auto locks = open_redis(redis_url(proxy_->port(), "&request_timeout=300ms"));
  ASSERT_NO_FATAL_FAILURE(lose_an_acquire(locks));
  locks.close();
  const auto before = client().calls("evalsha");
  proxy_->hold(old_, Direction::to_server, false);
  ASSERT_TRUE(eventually(patience(), [&] { return client().calls("evalsha") > before; }));
  EXPECT_EQ(exists("dlock:{x}") + exists("dlock:{x}%fence") + exists("dlock:{x}%queue"), 0);
  EXPECT_TRUE(open().lock("x")->try_acquire());
}

// Readers, permits and the order of `fair` have scripts of their own.
TEST_F(RedisLateCopy, ChangesNothingWhateverItAsksFor) {
  client().ask({"ACL", "SETUSER", "default", "-client|kill"});
  const auto lose = [&](std::string_view option, const auto& ask) {
    auto locks = open_redis(redis_url(proxy_->port(), option));
    pass_self_test(locks);
    ask(locks, "first");  // loads the script: a late call of an unknown one would do nothing
    const auto olds = proxy_->connections();
    for (const auto old : olds) proxy_->hold(old, Direction::to_server, true);
    EXPECT_THROW(ask(locks, "x"), LockError);
    locks.close();
    const auto before = client().calls("evalsha");
    for (const auto old : olds) proxy_->hold(old, Direction::to_server, false);
    EXPECT_TRUE(eventually(patience(), [&] { return client().calls("evalsha") > before; }));
    EXPECT_TRUE(eventually(patience(), [&] { return proxy_->stats().open == 0; }));
  };
  lose("&request_timeout=300ms", [](LockManager& locks, const char* name) {
    EXPECT_TRUE(locks.lock(name)->try_acquire({.mode = Mode::shared}));
  });
  lose("&request_timeout=300ms&fair=true",
       [](LockManager& locks, const char* name) { EXPECT_TRUE(locks.lock(name)->try_acquire()); });
  lose("&request_timeout=300ms", [](LockManager& locks, const char* name) {
    EXPECT_TRUE(locks.semaphore(name, 2).try_acquire());
  });
  for (const auto* key : {"{x}", "{x}%queue", "{x}%permits"}) {
    EXPECT_EQ(exists(std::string("dlock:") + key), 0) << key;
  }
}

TEST_F(RedisLate, WatchdogKeepsForThreeLeasesAndStopsWithTheRelease) {
  auto locks = open("&lease=1500ms");
  auto held = locks.lock("x")->acquire();
  StateLog log;
  log.record(held);
  // The job: three leases long.
  EXPECT_FALSE(log.wait_for(HandleState::lost, within(4500ms)));
  EXPECT_EQ(held.state(), HandleState::held);
  EXPECT_EQ(exists("dlock:{x}"), 1);
  held.release();
  Watch watch(server_.port());
  EXPECT_EQ(watch.first(3s), "");
}

TEST_F(RedisLate, WatchdogStopsWithItsProcess) {
  constexpr auto kLease = 1500ms;
  ProcessOptions options;
  options.argv = {DLOCK_BINARY, "--store", redis_url(server_.port(), "&lease=1500ms"), "hold", "x"};
  options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
  Process holder(std::move(options));
  ASSERT_TRUE(holder.read_line(patience()));
  Watch watch(server_.port());
  EXPECT_THAT(watch.first(30s), testing::HasSubstr("EVALSHA")) << "renewals are seen";
  holder.kill_and_wait();
  const auto died = Clock::now();
  // What was on its way is read now: its connection has gone.
  ASSERT_TRUE(eventually(patience(), [&] { return exists("dlock:{x}") == 0; }));
  EXPECT_LT(Clock::now() - died, kLease + 2s);
  Watch afterwards(server_.port());
  EXPECT_EQ(afterwards.first(2 * kLease), "");
}

TEST_F(RedisLate, F05_CancelledAcquiresLeaveNoRenewalAndNoKey) {
  auto locks = open("&lease=300ms");
  auto lock = locks.lock("x");
  for (int i = 0; i < 3000; ++i) {
    std::stop_source stop;
    std::thread stopper([&stop, i] {
      for (int spin = 0; spin < (i % 50) * 200; ++spin)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      stop.request_stop();
    });
    error_code ec;
    auto held = lock->acquire({.wait = 20s}, stop.get_token(), ec);
    stopper.join();
    if (held) held.release();
  }
  ASSERT_TRUE(eventually(within(10s), [&] { return exists("dlock:{x}") == 0; }));
  // A withdrawal may still be on its way; no renewal is.
  Watch watch(server_.port());
  EXPECT_EQ(watch.first(900ms, redis::scripts().renew.sha), "");
}

}  // namespace
}  // namespace dlock::testkit
