// SPDX-License-Identifier: Apache-2.0
//
// Semaphores before a store is asked, as locks of their own, and made by hand.
#include "dlock/semaphore.hpp"

#include <gtest/gtest.h>

#include <boost/asio/use_future.hpp>
#include <mutex>

#include "dlock/async.hpp"
#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

LockManager permits_on_memory(const std::string& store) {
  OpenOptions options;
  options.backends = {&memory::backend()};
  return LockManager::open("memory://" + store, std::move(options));
}

// Nothing is asked of the store: there is none to reach here.
TEST(Semaphores, AMigratingRouteRefusesThem) {
  Config config;
  config.stores.push_back({"a", "memory://permits-a", {}, {}});
  config.stores.push_back({"b", "memory://permits-b", {}, {}});
  RouteConfig route;
  route.store = "a";
  route.migrate.emplace();
  route.migrate->from = "a";
  route.migrate->to = "b";
  route.migrate->plan = "p";
  config.locks.push_back(route);
  OpenOptions options;
  options.backends = {&memory::backend()};
  auto locks = LockManager::from_config(config, std::move(options));
  try {
    (void)locks.semaphore("s", 3);
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::invalid_argument);
    EXPECT_NE(error.server_text().find("`migrate`"), std::string::npos) << error.server_text();
  }
  EXPECT_THROW(locks.set_semaphore("s", 3), LockError);
  EXPECT_THROW((void)locks.semaphore_status("s"), LockError);
}

TEST(Semaphores, PermitsAreALockForAllThatTakesOne) {
  auto locks = permits_on_memory("permits-as-lock");
  const auto slots = locks.semaphore("s", 2);
  const auto one = slots.permits();
  EXPECT_EQ(one->name(), "s");
  EXPECT_EQ(one->store(), "default");
  Mutex of_the_lock(locks.lock("s"));
  const std::scoped_lock guard(of_the_lock);
  const int held = synchronized(one, [&](const LockHandle& handle) {
    EXPECT_EQ(handle.permits(), 1U) << "it does not re-enter the lock of its name";
    return static_cast<int>(locks.semaphore_status("s").held());
  });
  EXPECT_EQ(held, 1);
  auto later = slots.permits(2)->async_acquire({.wait = 10s}, boost::asio::use_future);
  EXPECT_EQ(later.get().permits(), 2U);
  MultiLock both({slots.permits(2), locks.lock("other")});
  auto all = both.acquire();
  EXPECT_EQ(all.sequencers().size(), 1U) << "a permit's number fences nothing";
  EXPECT_FALSE(slots.try_acquire());
  EXPECT_FALSE(all.release());
  EXPECT_TRUE(slots.try_acquire_until(std::chrono::steady_clock::now()));
}

TEST(Semaphores, AreMadeByHandOfAnyLocks) {
  auto locks = permits_on_memory("permits-by-hand");
  std::uint32_t wanted_permits = 0;
  const Semaphore fake("s", 3, [&](std::uint32_t count) -> std::shared_ptr<DistributedLock> {
    wanted_permits = count;
    return locks.lock("s");
  });
  EXPECT_EQ(fake.name(), "s");
  EXPECT_EQ(fake.limit(), 3U);
  EXPECT_TRUE(fake.acquire(3));
  EXPECT_EQ(wanted_permits, 3U);
  EXPECT_TRUE(fake.try_acquire_for(1ms, 2));
  EXPECT_EQ(wanted_permits, 2U);
  EXPECT_THROW((void)fake.acquire(4), LockError);
  EXPECT_THROW((void)fake.acquire(0), LockError);
}

TEST(Semaphores, AStatusCountsWhatIsFree) {
  SemaphoreStatus status;
  EXPECT_EQ(status.free(), 0U);
  status.limit = 3;
  EXPECT_EQ(status.free(), 3U);
  status.holders.resize(2);
  status.holders[0].permits = 2;
  EXPECT_EQ(status.held(), 3U);
  EXPECT_EQ(status.free(), 0U);
  status.limit = 1;
  EXPECT_EQ(status.free(), 0U) << "it was lowered";
}

}  // namespace
}  // namespace dlock
