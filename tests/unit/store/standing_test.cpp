// SPDX-License-Identifier: Apache-2.0
//
// LockManager::check where it has nobody to ask.
#include <gtest/gtest.h>

#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/descriptor.hpp"

namespace dlock {
namespace {

LockManager two_stores() {
  Config config;
  config.stores.push_back({"a", "memory://standing-a", {}, {}});
  config.stores.push_back({"b", "memory://standing-b", {}, {}});
  RouteConfig route;
  route.store = "b";
  config.locks.push_back(route);
  OpenOptions options;
  options.backends = {&memory::backend()};
  return LockManager::from_config(config, std::move(options));
}

TEST(Standing, OfAGrantOfAnotherStoreIsUnknown) {
  auto locks = two_stores();
  const auto held = locks.lock("orders/42")->acquire();
  const auto ours = *held.sequencer();
  EXPECT_EQ(ours.store(), "b");
  EXPECT_EQ(locks.check(ours).standing, Standing::current);
  for (const auto* store : {"a", "elsewhere"}) {
    const auto report = locks.check({ours.name(), ours.mode(), ours.token(), store});
    EXPECT_EQ(report.standing, Standing::unknown);
    EXPECT_EQ(report.error, errc::config_invalid);
    EXPECT_NE(report.message.find("routed to 'b'"), std::string::npos) << report.message;
  }
}

TEST(Standing, OfReadersIsCurrentForEachOfThem) {
  auto locks = two_stores();
  const auto lock = locks.lock("orders/42");
  auto one = lock->acquire({.mode = Mode::shared});
  const auto two = lock->acquire({.mode = Mode::shared});
  const auto first = *one.sequencer();
  EXPECT_EQ(locks.check(first).standing, Standing::current);
  EXPECT_EQ(locks.check(*two.sequencer()).standing, Standing::current);
  EXPECT_EQ(locks.check({first.name(), Mode::exclusive, first.token(), "b"}).standing,
            Standing::superseded)
      << "nobody is a writer";
  EXPECT_FALSE(one.release());
  EXPECT_EQ(locks.check(first).standing, Standing::superseded);
}

// Where the mode cannot be had, nothing is asked of the store: there is none to reach here.
TEST(Standing, AMigratingRouteRefusesReaders) {
  Config config;
  config.stores.push_back({"a", "memory://standing-a", {}, {}});
  config.stores.push_back({"b", "memory://standing-b", {}, {}});
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
  Diagnostics why;
  error_code ec;
  EXPECT_FALSE(locks.lock("x")->acquire({.mode = Mode::shared, .diagnostics = &why}, {}, ec));
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_NE(why.server_text.find("`migrate`"), std::string::npos) << why.server_text;
}

TEST(Standing, OfAClosedManagerIsUnknown) {
  auto locks = two_stores();
  locks.close();
  const auto report = locks.check({"orders/42", Mode::exclusive, 1, "b"});
  EXPECT_EQ(report.standing, Standing::unknown);
  EXPECT_EQ(report.error, errc::closed);
}

}  // namespace
}  // namespace dlock
