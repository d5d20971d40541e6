// SPDX-License-Identifier: Apache-2.0
//
// A wait that ends without the lock: the last answer of the store decides, and no failure was seen
// since.
#include <limits>
#include <thread>

#include "tests/contract/links.hpp"

namespace dlock::contract {
namespace {

using testkit::Direction;

class DeadlineContract : public Contract {};
DLOCK_CONTRACT(DeadlineContract);

TEST_P(DeadlineContract, AShortTryOfALockThatIsHeldElsewhereAnswersFalse) {
  auto rival = open();
  const auto held = rival.lock("a")->acquire();
  auto manager = open();
  manager.connect();
  Mutex mutex(manager.lock("a"));
  for (int i = 0; i < 100; ++i) {
    EXPECT_NO_THROW(EXPECT_FALSE(mutex.try_lock_for(1ms)));
  }
  AcquireOptions short_wait;
  short_wait.wait = 1ms;
  error_code ec;
  EXPECT_FALSE(manager.lock("a")->try_acquire(short_wait, {}, ec));
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_EQ(error_of([&] { (void)manager.lock("a")->acquire(short_wait); }), errc::timed_out);
}

TEST_P(DeadlineContract, NoDurationIsTooLongOrTooOdd) {
  using Seconds = std::chrono::duration<double>;
  auto rival = open();
  auto manager = open();
  Mutex mutex(manager.lock("a"));
  auto held = rival.lock("a")->acquire();
  EXPECT_FALSE(mutex.try_lock_for(Seconds(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_FALSE(mutex.try_lock_for(Seconds(-1e300)));
  EXPECT_FALSE(mutex.try_lock_for(std::chrono::hours::min()));
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::time_point::min()));
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now() - 1h));
  EXPECT_FALSE(held.release());
  const auto is_obtained = [&mutex](bool obtained) {
    if (obtained) mutex.unlock();
    return obtained;
  };
  EXPECT_TRUE(is_obtained(mutex.try_lock_for(std::chrono::hours::max())));
  EXPECT_TRUE(is_obtained(mutex.try_lock_for(Seconds(1e300))));
  EXPECT_TRUE(is_obtained(mutex.try_lock_for(Seconds(std::numeric_limits<double>::infinity()))));
  EXPECT_TRUE(is_obtained(mutex.try_lock_until(std::chrono::steady_clock::time_point::max())));
  EXPECT_TRUE(is_obtained(mutex.try_lock_until(std::chrono::system_clock::time_point::max())));
  EXPECT_TRUE(manager.lock("a")->acquire({.wait = std::chrono::milliseconds::max()}));
}

TEST_P(DeadlineContract, AConnectMayWaitForEver) {
  auto manager = open();
  EXPECT_NO_THROW(manager.connect(std::chrono::milliseconds::max()));
  auto another = open();
  EXPECT_TRUE(another.inspect(std::chrono::milliseconds::max()).at(0).reached);
}

class SlowLinkContract : public ContractOfLinks {
 protected:
  static bool is_open(Mutex& mutex) {
    try {
      if (!mutex.try_lock_for(5s)) return false;
    } catch (const LockError&) {
      return false;
    }
    mutex.unlock();
    return true;
  }
};
DLOCK_CONTRACT_OF_LINKS(SlowLinkContract);

TEST_P(SlowLinkContract, AWaitWithoutAnAnswerIsUnavailable) {
  auto manager = proxied();
  proxy_->delay(Direction::to_client, 1h);
  Diagnostics told;
  AcquireOptions options;
  options.wait = 20ms;
  options.diagnostics = &told;
  error_code ec;
  const auto first_use = testkit::Clock::now();
  EXPECT_FALSE(manager.lock("a")->try_acquire(options, {}, ec));
  EXPECT_EQ(ec, errc::unavailable) << ec.message() << ": " << told.server_text;
  EXPECT_FALSE(told.server_text.empty());
  EXPECT_LT(testkit::Clock::now() - first_use, 30s);
  Mutex mutex(manager.lock("b"));
  EXPECT_EQ(error_of([&] { static_cast<void>(mutex.try_lock_for(20ms)); }), errc::unavailable);
  proxy_->delay(Direction::to_client, 0ms);
  proxy_->drop_all();
  EXPECT_TRUE(eventually(patience(), [&] { return is_open(mutex); }));
  // Also later, when the link was good once.
  proxy_->delay(Direction::to_client, 1h);
  EXPECT_EQ(error_of([&] { static_cast<void>(mutex.try_lock_for(20ms)); }), errc::unavailable);
  proxy_->delay(Direction::to_client, 0ms);
  proxy_->drop_all();
}

TEST_P(SlowLinkContract, AShortWaitGetsTheFirstAnswerOfASlowStore) {
  auto rival = open();
  const auto held = rival.lock("held")->acquire();
  auto manager = proxied();
  manager.connect();
  proxy_->delay(Direction::to_client, 100ms);
  AcquireOptions brief;
  brief.wait = 1ms;
  error_code ec;
  EXPECT_FALSE(manager.lock("held")->try_acquire(brief, {}, ec));
  EXPECT_FALSE(ec) << ec.message();
  proxy_->delay(Direction::to_client, 0ms);
}

TEST_P(SlowLinkContract, AFirstUseThatIsRefusedIsUnavailableWithItsCause) {
  auto manager = proxied();
  proxy_->refuse(true);
  Diagnostics told;
  AcquireOptions options;
  options.wait = 1s;
  options.diagnostics = &told;
  error_code ec;
  (void)manager.lock("a")->acquire(options, {}, ec);
  EXPECT_EQ(ec, errc::unavailable) << ec.message() << ": " << told.server_text;
  EXPECT_FALSE(told.server_text.empty());
  Mutex mutex(manager.lock("a"));
  EXPECT_EQ(error_of([&] { static_cast<void>(mutex.try_lock_for(1s)); }), errc::unavailable);
}

TEST_P(SlowLinkContract, ALinkThatBreaksInAWaitIsUnavailableWithItsCause) {
  auto rival = open();
  const auto held = rival.lock("a")->acquire();
  auto manager = proxied();
  manager.connect();
  Diagnostics told;
  AcquireOptions options;
  options.wait = 2s;
  options.diagnostics = &told;
  error_code ec;
  std::thread waiter([&] { (void)manager.lock("a")->acquire(options, {}, ec); });
  EXPECT_TRUE(waiters_become("a", 1));
  proxy_->refuse(true);
  proxy_->drop_all();
  waiter.join();
  EXPECT_EQ(ec, errc::unavailable) << ec.message() << ": " << told.server_text;
  EXPECT_FALSE(told.server_text.empty());
  proxy_->refuse(false);
}

}  // namespace
}  // namespace dlock::contract
