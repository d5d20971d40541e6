// SPDX-License-Identifier: Apache-2.0
//
// One process, one manager, all stores: names find theirs by pattern, with options of their own.
#include "dlock/lock_manager.hpp"
#include "tests/cli/cli_support.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::cli_test {
namespace {

OpenOptions quiet() {
  OpenOptions options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

struct Store {
  testkit::RunningStore running;
  Capabilities capabilities;
  bool has_leases() const { return capabilities.lease_scope == LeaseScope::claim; }
  std::string name(std::string_view rest) const {
    return running.backend + "/" + std::string(rest);
  }
};

class CliRoutes : public testing::Test {
 protected:
  CliRoutes() {
    for (auto& running : testkit::start_every_store()) {
      auto alone = LockManager::open(running.url, quiet());
      auto capabilities = alone.inspect().at(0).capabilities.value();
      stores_.push_back({std::move(running), std::move(capabilities)});
    }
  }

  /// For each store NAME: `NAME/quick/**` waits 500 ms, `NAME/short/**` has a lease of 4 s where
  /// leases are per lock, `NAME/strict/**` requires exclusion, and `NAME/**` says nothing.
  LockManager open_all() const {
    std::string stores = "stores:\n";
    std::string locks = "locks:\n";
    for (const auto& store : stores_) {
      stores += "  " + store.running.backend + ": \"" + store.running.url + "\"\n";
      const auto route = [&](std::string_view match, const std::string& options) {
        locks += "  - { match: \"" + store.name(match) + "\", store: " + store.running.backend +
                 options + " }\n";
      };
      route("quick/**", ", wait: 500ms");
      if (store.has_leases()) route("short/**", ", lease: 4s");
      route("strict/**", ", require: exclusive");
      route("**", "");
    }
    return LockManager::from_config(Config::from_yaml(stores + locks, "routes.yaml"), quiet());
  }

  std::vector<Store> stores_;
};

TEST_F(CliRoutes, NamesFindTheirStoreAndNoOther) {
  auto all = open_all();
  std::vector<LockHandle> held;
  for (const auto& store : stores_) held.push_back(all.lock(store.name("x"))->acquire());
  for (const auto& here : stores_) {
    auto alone = LockManager::open(here.running.url, quiet());
    for (const auto& store : stores_) {
      EXPECT_EQ(alone.status(store.name("x")).held, &store == &here)
          << store.name("x") << " on " << here.running.backend;
    }
  }
  for (auto& handle : held) EXPECT_FALSE(handle.release());
}

TEST_F(CliRoutes, ALockHasTheOptionsOfItsRoute) {
  auto all = open_all();
  auto others = open_all();
  for (const auto& store : stores_) {
    SCOPED_TRACE(store.running.backend);
    auto held = all.lock(store.name("quick/x"))->acquire({.wait = 30s});
    others.lock(store.name("x"))->acquire().release();  // connects, which may take its time
    const auto start = testkit::Clock::now();
    error_code ec;
    (void)others.lock(store.name("quick/x"))->acquire({}, {}, ec);
    EXPECT_EQ(ec, errc::timed_out) << ec.message();
    EXPECT_GE(testkit::Clock::now() - start, 500ms);
    EXPECT_LT(testkit::Clock::now() - start, 30s);

    if (!store.has_leases()) continue;
    const auto short_one = all.lock(store.name("short/x"))->acquire();
    EXPECT_LE(short_one.remaining().value(), 4s);
    const auto plain_one = all.lock(store.name("x"))->acquire();
    EXPECT_GT(plain_one.remaining().value(), store.capabilities.lease / 2);
  }
}

// Where a store cannot promise it, the names of that route are refused, and no others.
TEST_F(CliRoutes, RequireHoldsForTheNamesOfItsRoute) {
  auto all = open_all();
  for (const auto& store : stores_) {
    SCOPED_TRACE(store.running.backend);
    Diagnostics diagnostics;
    error_code ec;
    const auto strict =
        all.lock(store.name("strict/x"))->acquire({.diagnostics = &diagnostics}, {}, ec);
    if (store.capabilities.guarantee == Guarantee::exclusive) {
      EXPECT_FALSE(ec) << ec.message();
    } else {
      EXPECT_EQ(ec, errc::config_unsafe) << ec.message();
      for (const auto& shortfall : store.capabilities.shortfalls) {
        EXPECT_NE(diagnostics.server_text.find(shortfall.remedy), std::string::npos)
            << diagnostics.server_text;
      }
    }
    EXPECT_TRUE(all.lock(store.name("plain"))->try_acquire({.wait = 30s}));
  }
}

}  // namespace
}  // namespace dlock::cli_test
