// SPDX-License-Identifier: Apache-2.0
//
// The YAML of a configuration: what is read, and every complaint with its place and remedy.
#include <gtest/gtest.h>

#include "dlock/config.hpp"
#include "dlock/error.hpp"
#include "dlock/options.hpp"

namespace dlock::core {
namespace {

using namespace std::chrono_literals;

Config read(const char* text) { return Config::from_yaml(text, "dlock.yaml"); }

std::string complaint(const char* text) {
  try {
    read(text);
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_invalid);
    return error.server_text();
  }
  return "(none)";
}

TEST(Yaml, ARouteMayMoveItsLocks) {
  const auto config = read(R"(
stores: { zk: "zookeeper://zk1", redis: "redis://r1" }
locks:
  - { match: "billing/**", migrate: { from: zk, to: redis, plan: billing-2026, poll: 2s }, wait: 5s }
  - { match: "**", store: zk }
)");
  const auto& route = config.locks.at(0);
  ASSERT_TRUE(route.migrate);
  EXPECT_EQ(route.store, "zk");
  EXPECT_EQ(route.migrate->from, "zk");
  EXPECT_EQ(route.migrate->to, "redis");
  EXPECT_EQ(route.migrate->plan, "billing-2026");
  EXPECT_EQ(route.migrate->poll, 2s);
  EXPECT_EQ(route.wait, 5s);
  EXPECT_FALSE(config.locks.at(1).migrate);
}

TEST(Yaml, ARouteMayNameTheStoreOfItsGate) {
  const auto config = read(R"(
stores: { cache: "memcached://m1", zk: "zookeeper://zk1", third: "file:///var/lib/third" }
locks:
  - { match: "a/**", migrate: { from: cache, to: zk, plan: p, gate: zk } }
  - { match: "b/**", migrate: { from: cache, to: zk, plan: q, gate: third } }
  - { match: "**", migrate: { from: cache, to: zk, plan: r } }
)");
  EXPECT_EQ(config.locks.at(0).store, "cache");
  EXPECT_EQ(config.locks.at(0).migrate->gate, "zk");
  EXPECT_EQ(config.locks.at(1).migrate->gate, "third");
  EXPECT_EQ(config.locks.at(2).migrate->gate, "");
}

TEST(Yaml, AMistakeInAGateHasItsPlaceAndRemedy) {
  const std::string stores =
      "stores: { zk: \"zookeeper://zk1\", redis: \"redis://r1\", third: \"redis://r2\" }\n"
      "locks:\n";
  const auto route = [](const std::string& more, const std::string& from = "redis") {
    return "  - { match: a, migrate: { from: " + from + ", to: zk, plan: p" + more + " } }\n";
  };
  const auto expect = [&](const std::string& routes, const std::string& place,
                          const std::string& part) {
    const auto text = complaint((stores + routes).c_str());
    EXPECT_NE(text.find("dlock.yaml:" + place + ":"), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(route(", gate: zoo"), "3", "gate: there is no store 'zoo'");
  expect(route(", gate: redis"), "3", "gate: 'redis' is the source; write `gate: zk`");
  expect(route(", gate: zk, poll: 1s"), "3", "`poll` has no effect with `gate`; leave it out");
  const std::string other = "plan 'p' has other stores, or another `gate`, in line 3";
  expect(route(", gate: zk") + route(""), "4", other);
  expect(route("") + route(", gate: zk"), "4", other);
  expect(route(", gate: zk") + route(", gate: third"), "4", other);
  expect(route(", gate: zk") + route(", gate: zk", "third"), "4", other);
}

TEST(Yaml, APlanCannotNameAGateStoreOfDots) {
  EXPECT_NE(complaint(R"(
stores: { redis: "redis://r1", zk: "zookeeper://zk1", "..": "file:///var/lib/third" }
locks:
  - { match: a, migrate: { from: redis, to: zk, plan: p, gate: ".." } }
)")
                .find("dlock.yaml:4:"),
            std::string::npos);
}

TEST(Yaml, RoutesOfAPlanMayNameTheSameGate) {
  const auto config = read(R"(
stores: { cache: "memcached://m1", zk: "zookeeper://zk1" }
locks:
  - { match: "a/**", migrate: { from: cache, to: zk, plan: p, gate: zk } }
  - { match: "b", migrate: { from: cache, to: zk, plan: p, gate: zk } }
)");
  EXPECT_EQ(config.locks.size(), 2U);
}

TEST(Yaml, AKeyOfTheRemovedModeIsUnknown) {
  for (const std::string key : {"mode: dual", "phase: 1", "window: zk"}) {
    const auto text =
        complaint(("stores: { zk: \"zookeeper://zk1\", redis: \"redis://r1\" }\nlocks:\n"
                   "  - { match: a, migrate: { from: redis, to: zk, plan: p, " +
                   key + " } }\n")
                      .c_str());
    const auto name = key.substr(0, key.find(':'));
    EXPECT_NE(text.find("dlock.yaml:3:"), std::string::npos) << text;
    EXPECT_NE(text.find(name + ": unknown key of migrate; known: from, to, plan, gate, poll"),
              std::string::npos)
        << text;
  }
}

TEST(Yaml, WhatIsWrongWithAMigrationHasItsPlaceAndRemedy) {
  const std::string stores = "stores: { zk: \"zookeeper://zk1\", redis: \"redis://r1\" }\n";
  const auto of = [&](const std::string& route) {
    return complaint((stores + "locks:\n  - " + route + "\n").c_str());
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find("dlock.yaml:3:"), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(of("{ match: a, migrate: { from: zk, to: redi, plan: p } }"),
         "to: there is no store 'redi'; did you mean 'redis'?");
  expect(of("{ match: a, migrate: { from: zk, to: zk, plan: p } }"), "from and to are both 'zk'");
  expect(of("{ match: a, migrate: { from: zk, to: redis } }"), "`plan` is missing");
  expect(of("{ match: a, migrate: { from: zk, to: redis, plan: \"a b\" } }"), "plan: 'a b'");
  expect(of("{ match: a, migrate: { from: zk, to: redis, plan: p, pol: 1s } }"), "'poll'");
  expect(of("{ match: a, migrate: { from: zk, to: redis, plan: p, poll: 1ms } }"), "50ms to 60s");
  expect(of("{ match: a, store: zk, migrate: { from: zk, to: redis, plan: p } }"),
         "write `migrate` instead of `store`");
}

TEST(Yaml, ReadsStoresAndRoutes) {
  const auto config = read(R"(
stores:
  zk:    { url: "zookeeper://zk1,zk2/app", session_timeout: 10s, retry: { policy: exponential, base: 100ms } }
  cache:
    url: "redis://10.0.0.9:6379/0"
    lease: 30s
    auth: { username: app, password_env: REDIS_PASSWORD }
    require: [exclusive, token]
  plain: "file:///var/lib/app"
locks:
  - { match: "billing/**", store: zk, require: [exclusive, fair] }
  - { match: "jobs/*", store: plain, wait: forever, lease: 1m, max_hold: 10m, max_queue: 100 }
  - { match: "**", store: cache, wait: 5s, require: token }
)");
  ASSERT_EQ(config.stores.size(), 3U);
  const auto& zk = config.stores[0];
  EXPECT_EQ(zk.name, "zk");
  EXPECT_EQ(zk.url, "zookeeper://zk1,zk2/app");
  ASSERT_EQ(zk.settings.size(), 3U);
  EXPECT_EQ(zk.settings[0].key, "session_timeout");
  EXPECT_EQ(zk.settings[0].value, "10s");
  EXPECT_EQ(zk.settings[0].origin.text(), "dlock.yaml:3:44");
  EXPECT_EQ(zk.settings[1].key, "retry.policy");
  EXPECT_EQ(zk.settings[2].key, "retry.base");
  const auto& cache = config.stores[1];
  EXPECT_EQ(cache.settings[0].origin.line, 6);
  EXPECT_EQ(cache.settings[1].key, "auth.username");
  EXPECT_EQ(cache.settings[3].value, "exclusive,token");
  EXPECT_EQ(config.stores[2].url, "file:///var/lib/app");

  ASSERT_EQ(config.locks.size(), 3U);
  EXPECT_EQ(config.locks[0].match, "billing/**");
  EXPECT_EQ(config.locks[0].store, "zk");
  EXPECT_EQ(config.locks[0].require, (std::vector<std::string>{"exclusive", "fair"}));
  EXPECT_EQ(config.locks[0].origin.line, 11);
  EXPECT_EQ(config.locks[1].wait, kWaitForever);
  EXPECT_EQ(config.locks[1].lease, 1min);
  EXPECT_EQ(config.locks[1].max_hold, 10min);
  EXPECT_EQ(config.locks[1].max_queue, 100U);
  EXPECT_EQ(config.locks[2].wait, 5s);
  EXPECT_EQ(config.locks[2].require, (std::vector<std::string>{"token"}));
  EXPECT_TRUE(config.warnings.empty());
}

TEST(Yaml, OneStoreNeedsNoRoute) {
  const auto config = read("stores: { main: { url: \"memory://x\" } }");
  ASSERT_EQ(config.locks.size(), 1U);
  EXPECT_EQ(config.locks[0].match, "**");
  EXPECT_EQ(config.locks[0].store, "main");
  EXPECT_EQ(read("stores: { main: \"memory://x\" }\nlocks: [ { match: \"a/**\" } ]").locks[0].store,
            "main");
}

TEST(Yaml, ComplaintsSayWhereWhatAndWhatInstead) {
  const std::pair<const char*, const char*> table[] = {
      {"", "dlock.yaml: the file is empty"},
      {"# nothing\n", "the file is empty"},
      {"just words", "dlock.yaml:1:1: the configuration: a mapping is expected"},
      {"stores: { a: [ }", "dlock.yaml:1:"},
      {"stores:\n  a: \"unclosed", "dlock.yaml:2:"},
      {"stores:\n\t- a", "not YAML"},
      {"store:\n  a: x", "dlock.yaml:1:1: store: unknown key; did you mean 'stores'?"},
      {"stores: { a: \"memory://x\" }\nlock: []",
       "dlock.yaml:2:1: lock: unknown key; did you mean"},
      {"stores: {}", "no store is configured"},
      {"stores:\n  a: { session_timeout: 10s }", "dlock.yaml:2:3: store 'a' has no url"},
      {"stores:\n  a: { url: }", "url: it has no value"},
      {"stores:\n  a: { url: [x] }", "url: one value is expected"},
      {"stores:\n  a:", "a mapping is expected"},
      {"stores:\n  a b: \"memory://x\"", "dlock.yaml:2:3: 'a b' is not a name for a store"},
      {"stores:\n  a: \"memory://x\"\n  a: \"memory://y\"",
       "dlock.yaml:3:3: stores: 'a' is written twice (first in line 2)"},
      {"stores:\n  a: { url: \"x://y\", url: \"x://z\" }", "'url' is written twice"},
      {"stores:\n  a: { url: \"x://y\", retry: { base: 1s, base: 2s } }",
       "'base' is written twice"},
      {"stores:\n  a: { url: \"x://y\", lease: }", "lease: it has no value"},
      {"stores:\n  a: { url: \"x://y\", require: [] }", "the list is empty"},
      {"stores:\n  a: \"memory://x\"\n  b: \"memory://y\"",
       "several stores, but no `locks` that say which lock goes where; write for example locks: [ "
       "{ "
       "match: \"**\", store: a } ]"},
      {"stores:\n  a: { url: \"x://y\", url_env: Y }", "store 'a' has url and url_env; keep one"},
      {"stores:\n  a: { url_env: }", "url_env: it has no value"},
      {"stores:\n  a: \"memory://x\"\nlocks:\n  - { match: \"**\", store: b }",
       "dlock.yaml:4:20: store: there is no store 'b'; known: a"},
      {"stores:\n  main: \"memory://x\"\nlocks:\n  - { match: \"**\", store: other }",
       "there is no store 'other'; known: main"},
      {"stores:\n  a: \"memory://x\"\nlocks: { match: x }", "locks: a list is expected"},
      {"stores:\n  a: \"memory://x\"\nlocks:\n  - { store: a }", "a route needs `match`"},
      {"stores:\n  a: \"memory://x\"\nlocks:\n  - { match: \"a**\", store: a }",
       "dlock.yaml:4:7: match: 'a**': `**` must be a part of its own"},
      {"stores:\n  a: \"memory://x\"\nlocks:\n  - { match: \"**\", store: a, wait: 5 }",
       "dlock.yaml:4:30: wait: '5': it has no unit; write 5s or 5ms"},
      {"stores:\n  a: \"memory://x\"\nlocks:\n  - { match: \"**\", store: a, lease: 0 }",
       "write 1ms or more"},
      {"stores:\n  a: \"memory://x\"\nlocks:\n  - { match: \"**\", store: a, max_hold: 0 }",
       "dlock.yaml:4:30: max_hold: '0': write 1ms or more"},
      {"stores:\n  a: \"memory://x\"\nlocks:\n  - { match: \"**\", store: a, max_queue: -1 }",
       "dlock.yaml:4:30: max_queue: '-1': write a number from 0 to 1000000"},
      {"stores:\n  a: \"memory://x\"\nlocks:\n  - { match: \"**\", store: a, weit: 5s }",
       "dlock.yaml:4:30: weit: unknown key of a route; did you mean 'wait'?"},
      {"stores:\n  a: \"memory://x\"\nlocks:\n  - { match: \"**\", store: a, require: fare }",
       "did you mean 'fair'?"},
      {"stores:\n  a: \"memory://x\"\n  b: \"memory://x\"\nlocks:\n  - { match: \"**\" }",
       "the route '**' needs `store`"},
      {"stores: { a: \"memory://x\" }\n---\nstores: {}",
       "dlock.yaml:2:1: one document is expected; remove the `---`"},
      // YAML::LoadAll does not come back from this one.
      {"--- ,\n", "dlock.yaml"},
      // An alias inside of what it stands for, and one that grows with every level.
      {"stores: { a: &a { url: \"memory://x\", retry: *a } }", "too deep in each other"},
      {"stores: { a: &a { x: *a, y: *a } }", "too deep in each other"},
      {"stores: { a: { url: \"memory://x\", l: &a { x: {} } } }", "l.x: it has no value"},
  };
  for (const auto& [text, expected] : table) {
    EXPECT_NE(complaint(text).find(expected), std::string::npos)
        << text << "\nwanted: " << expected << "\n   got: " << complaint(text);
  }
}

TEST(Yaml, AnUnquotedSecretThatIsAnAliasIsNotShown) {
  const auto said =
      complaint("stores: { a: { url: \"memory://x\", auth: { password: *hunter2 } } }");
  EXPECT_NE(said.find("dlock.yaml:1:"), std::string::npos) << said;
  EXPECT_EQ(said.find("hunter2"), std::string::npos) << said;
}

TEST(Yaml, WarnsOfRoutesThatAreNeverReached) {
  const auto config = read(R"(stores: { a: "memory://x" }
locks:
  - { match: "b/**" }
  - { match: "b/c" }
  - { match: "**" }
  - { match: "d" }
)");
  ASSERT_EQ(config.warnings.size(), 2U);
  EXPECT_NE(config.warnings[0].find("dlock.yaml:4:5: the route 'b/c' is never reached: 'b/**' in "
                                    "line 3"),
            std::string::npos)
      << config.warnings[0];
  EXPECT_NE(config.warnings[1].find("the route 'd' is never reached"), std::string::npos);
}

// The block of the Java starter as its own page shows it.
TEST(Yaml, ReadsTheStartersBlockUnchanged) {
  const auto config = read(R"(zk-lock:
  address: 127.0.0.1:2181
  connection-timeout: 1500000000
  session-timeout: 600000
  retry-policy: retry-forever #
  retry_forever:
    retry-interval-ms: 3000
)");
  ASSERT_EQ(config.stores.size(), 1U);
  const auto& store = config.stores[0];
  EXPECT_EQ(store.name, "zk");
  EXPECT_EQ(store.url, "zookeeper://127.0.0.1:2181");
  ASSERT_EQ(store.settings.size(), 4U);
  EXPECT_EQ(store.settings[0].key + "=" + store.settings[0].value, "connect_timeout=1m");
  EXPECT_EQ(store.settings[1].key + "=" + store.settings[1].value, "session_timeout=40s");
  EXPECT_EQ(store.settings[1].starter_key, "zk-lock: session-timeout");
  EXPECT_EQ(store.settings[2].key + "=" + store.settings[2].value, "retry.policy=forever");
  EXPECT_EQ(store.settings[3].key + "=" + store.settings[3].value, "retry.interval=3000ms");
  ASSERT_EQ(config.locks.size(), 1U);
  EXPECT_EQ(config.locks[0].match, "**");
  EXPECT_EQ(config.locks[0].store, "zk");
  ASSERT_EQ(config.warnings.size(), 2U);
  EXPECT_EQ(config.warnings[0],
            "dlock.yaml:3:3: zk-lock: connection-timeout: 1500000000 ms is too long; used: 60000 "
            "ms (1m)");
  EXPECT_EQ(
      config.warnings[1],
      "dlock.yaml:4:3: zk-lock: session-timeout: 600000 ms is too long; used: 40000 ms (40s)");
}

TEST(Yaml, ReadsTheStartersOtherSpellings) {
  const auto config = read(R"(
server: { port: 8080 }
zk-lock:
  address: zk1:2181,zk2:2181
  connectionTimeout: 5000
  session_timeout: 10000
  retry-policy: ExponentialBackoffRetry
  exponential-backoff-retry: { base-sleep-time-ms: 1000, max-retries: 3 }
  retry-n-times: { n: 5, sleep-ms-between-retries: 10 }
  lock-type: MUTEX
  colour: blue
)");
  const auto& store = config.stores.at(0);
  EXPECT_EQ(store.url, "zookeeper://zk1:2181,zk2:2181");
  std::string settings;
  for (const auto& setting : store.settings) settings += setting.key + "=" + setting.value + " ";
  EXPECT_EQ(settings,
            "connect_timeout=5s session_timeout=10s retry.policy=exponential retry.base=1000ms "
            "retry.times=3 ");
  ASSERT_EQ(config.warnings.size(), 2U);
  EXPECT_NE(config.warnings[0].find("colour: unknown, ignored"), std::string::npos);
  EXPECT_NE(config.warnings[1].find("not ours: server"), std::string::npos);
}

TEST(Yaml, ComplainsAboutTheStartersBlockToo) {
  const std::pair<const char*, const char*> table[] = {
      {"zk-lock: { session-timeout: 5000 }", "zk-lock has no address"},
      {"zk-lock:\n  address: h\n  session-timeout: soon",
       "dlock.yaml:3:3: zk-lock: session-timeout: 'soon' is not a number of milliseconds"},
      {"zk-lock: { address: h, retry-policy: never }",
       "'never' is not a retry policy; write retry-forever"},
      {"stores: { zk: \"memory://x\" }\nzk-lock: { address: h }", "keep one"},
      {"zk-lock: 5", "a mapping is expected"},
      {"u2-lock: { address: h }",
       "u2-lock: this block of the starter is not read; write its address"},
      {"u2Lock: { address: h }", "types: mutex, read, write, semaphore_mutex, multi"},
      {"zk-lock: { address: h, lock-type: READ }",
       "lock-type: 'READ': the type of each lock stands in `sections:`"},
  };
  for (const auto& [text, expected] : table) {
    EXPECT_NE(complaint(text).find(expected), std::string::npos) << complaint(text);
  }
}

}  // namespace
}  // namespace dlock::core
