// SPDX-License-Identifier: Apache-2.0
//
// A wait that runs out says so, and nothing else: that the store is out of reach is said where it
// was seen to be.
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

class SlowLinkContract : public ContractOfLinks {};
DLOCK_CONTRACT_OF_LINKS(SlowLinkContract);

TEST_P(SlowLinkContract, AFirstUseThatIsTooShortForTheLinkIsTimedOut) {
  auto manager = proxied();
  proxy_->delay(Direction::to_client, 300ms);
  Diagnostics told;
  AcquireOptions options;
  options.wait = 20ms;
  options.diagnostics = &told;
  error_code ec;
  (void)manager.lock("a")->acquire(options, {}, ec);
  EXPECT_EQ(ec, errc::timed_out) << ec.message() << ": " << told.server_text;
  EXPECT_NE(told.server_text.find("had not answered"), std::string::npos) << told.server_text;
  Mutex mutex(manager.lock("b"));
  EXPECT_NO_THROW(EXPECT_FALSE(mutex.try_lock_for(20ms)));
  proxy_->delay(Direction::to_client, 0ms);
  EXPECT_TRUE(mutex.try_lock_for(60s));
  mutex.unlock();
  // Also later, when the link was good once.
  proxy_->delay(Direction::to_client, 300ms);
  EXPECT_NO_THROW(EXPECT_FALSE(mutex.try_lock_for(20ms)));
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
