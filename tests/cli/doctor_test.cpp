// SPDX-License-Identifier: Apache-2.0
//
// `dlock doctor` over all stores at once: what each promises as its server is configured, what that
// rests on, and which setting lowers it.
#include <algorithm>
#include <memory>
#include <set>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/servers/memcached.hpp"
#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"
#include "tests/support/careless_proxy.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::cli_test {
namespace {

namespace json = boost::json;

bool is_built(std::string_view backend) {
  for (const auto* built : OpenOptions::built_in().backends) {
    if (built->name == backend) return true;
  }
  return false;
}

json::array array_of(const json::object& object, const char* key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_array() ? value->as_array() : json::array{};
}

/// The remedies of a store's shortfalls, one after the other.
std::string remedies(const json::object& finding) {
  std::string all;
  for (const auto& shortfall : array_of(finding, "shortfalls")) {
    all += text(shortfall.as_object(), "remedy") + "\n";
  }
  return all;
}

json::object finding_of(const std::string& url) {
  const auto result = finish(dlock_on(url, {"doctor", "--json"}));
  EXPECT_EQ(result.status.shell_status(), 0) << result.err;
  const auto findings = json::parse(result.out);
  return findings.as_array().at(0).as_object();
}

/// A configuration of all of them: each store named `prefix` + its backend, with `options`, and the
/// locks below that name routed to it.
std::string yaml_of(const std::vector<testkit::RunningStore>& all, const std::string& prefix,
                    const std::string& options = {}) {
  std::string stores = "stores:\n";
  std::string locks = "locks:\n";
  for (const auto& store : all) {
    const auto name = prefix + store.backend;
    stores += "  " + name + ": { url: \"" + store.url + "\"" + options + " }\n";
    locks += "  - { match: \"" + store.backend + "/**\", store: " + name + " }\n";
  }
  return stores + locks;
}

/// The routes of yaml_of(), each edited so that it leads to the next store.
std::string with_edited_routes(const std::vector<testkit::RunningStore>& all,
                               const std::string& prefix) {
  std::string yaml = yaml_of(all, prefix);
  yaml.erase(yaml.find("locks:"));
  yaml += "locks:\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    yaml += "  - { match: \"" + all[i].backend + "/**\", store: " + prefix +
            all[(i + 1) % all.size()].backend + " }\n";
  }
  return yaml;
}

TEST(CliDoctorOfAll, WarnsOfAProgramThatLocksByTheRouteBeforeTheEdit) {
  const auto stores = testkit::start_every_store();
  const testkit::TempDir folder("dlock-cli-test");
  const auto before = (folder / "before.yaml").string();
  const auto after = (folder / "after.yaml").string();
  testkit::write_file(before, yaml_of(stores, "my-"));
  testkit::write_file(after, with_edited_routes(stores, "my-"));
  std::vector<std::unique_ptr<testkit::Process>> holders;
  std::set<std::string> expected;
  for (const auto& store : stores) {
    holders.push_back(std::make_unique<testkit::Process>(
        dlock({"--config", before, "hold", store.backend + "/x"})));
    EXPECT_EQ(text(read_event(*holders.back()), "event"), "held");
    if (store.backend == "memcached") continue;  // it keeps no note
    expected.insert("store 'my-" + store.backend + "': programs with another configuration lock " +
                    "names of '" + store.backend + "/**' here");
  }
  std::string said;
  EXPECT_TRUE(testkit::eventually(patience(), [&] {
    said = finish(dlock({"--config", after, "doctor"})).err;
    return std::all_of(expected.begin(), expected.end(), [&](const std::string& warning) {
      return said.find(warning) != std::string::npos;
    });
  })) << said;
  EXPECT_EQ(said.find("names of 'memcached/**'"), std::string::npos) << said;
  const auto same = finish(dlock({"--config", before, "doctor"})).err;
  EXPECT_EQ(same.find("another configuration"), std::string::npos) << same;
}

TEST(CliDoctorOfAll, SaysWhatEachPromisesAndWhatLowersIt) {
  const auto stores = testkit::start_every_store();
  const testkit::TempDir folder("dlock-cli-test");
  const auto file = (folder / "dlock.yaml").string();
  testkit::write_file(file, yaml_of(stores, "my-"));

  const auto result = finish(dlock({"--config", file, "doctor", "--json"}));
  ASSERT_EQ(result.status.shell_status(), 0) << result.err;
  const auto findings = json::parse(result.out).as_array();
  ASSERT_EQ(findings.size(), stores.size());
  const auto people = finish(dlock({"--config", file, "doctor"})).out;
  for (std::size_t i = 0; i < stores.size(); ++i) {
    const auto& finding = findings[i].as_object();
    SCOPED_TRACE(stores[i].backend);
    EXPECT_EQ(text(finding, "store"), "my-" + stores[i].backend);
    EXPECT_EQ(text(finding, "backend"), stores[i].backend);
    EXPECT_EQ(finding.at("reached"), json::value(true));
    const bool exclusive = text(finding, "guarantee") == "exclusive";
    const auto assumptions = array_of(finding, "assumptions");
    EXPECT_FALSE(assumptions.empty());
    for (const auto& assumption : assumptions) {
      const auto name = text(assumption.as_object(), "name");
      EXPECT_NE(text(assumption.as_object(), "meaning"), "");
      EXPECT_NE(people.find(name + ": "), std::string::npos) << name;
    }
    const auto shortfalls = array_of(finding, "shortfalls");
    EXPECT_EQ(shortfalls.empty(), exclusive) << "what lowers it has a name";
    for (const auto& shortfall : shortfalls) {
      const auto remedy = text(shortfall.as_object(), "remedy");
      EXPECT_NE(remedy, "");
      EXPECT_NE(people.find("; to change that: " + remedy), std::string::npos) << people;
    }
    EXPECT_NE(people.find("my-" + stores[i].backend + " (" + stores[i].backend + "): reached in "),
              std::string::npos)
        << people;
  }
}

TEST(CliDoctorOfAll, RefusesOnlyTheStoresThatCannotGiveWhatIsRequired) {
  const auto stores = testkit::start_every_store();
  const testkit::TempDir folder("dlock-cli-test");
  const auto file = (folder / "dlock.yaml").string();
  testkit::write_file(file, yaml_of(stores, "", ", require: exclusive"));
  const auto result = finish(dlock({"--config", file, "doctor", "--json"}));
  bool any = false;
  const auto findings = json::parse(result.out);
  for (const auto& value : findings.as_array()) {
    const auto& finding = value.as_object();
    const bool refused = !finding.at("error").is_null();
    EXPECT_EQ(refused, text(finding, "guarantee") == "best_effort") << text(finding, "store");
    any = any || refused;
    if (!refused) continue;
    for (const auto& shortfall : array_of(finding, "shortfalls")) {
      EXPECT_NE(text(finding, "message").find(text(shortfall.as_object(), "remedy")),
                std::string::npos)
          << text(finding, "message");
    }
  }
  EXPECT_EQ(result.status.shell_status(), any ? 78 : 0) << result.err;
}

TEST(CliDoctorOfAll, ASettingOfTheServerMovesThePromise) {
  if (is_built("redis")) {
    testkit::RedisServer bare;
    bare.start();
    EXPECT_NE(remedies(finding_of(bare.url())).find("appendonly yes"), std::string::npos);
    testkit::RedisServer durable({"--appendonly", "yes", "--appendfsync", "always"});
    durable.start();
    EXPECT_EQ(text(finding_of(durable.url()), "guarantee"), "exclusive");
    testkit::RedisServer evicting(
        {"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "allkeys-lru"});
    evicting.start();
    EXPECT_EQ(remedies(finding_of(evicting.url())), "CONFIG SET maxmemory-policy noeviction\n");
  }
  if (is_built("memcached")) {
    testkit::MemcachedServer bare;
    bare.start();
    EXPECT_NE(remedies(finding_of(bare.url())).find("-M"), std::string::npos);
    testkit::MemcachedServer keeping({"-M"});
    keeping.start();
    const auto finding = finding_of(keeping.url());
    EXPECT_EQ(text(finding, "guarantee"), "best_effort");
    EXPECT_EQ(remedies(finding).find("start memcached with -M"), std::string::npos);
  }
}

TEST(CliDoctorOfAll, PrintsTheStepsOfTheSelfTest) {
  std::vector<std::string> urls;
  testkit::MemcachedServer memcached;
  testkit::RedisServer redis;
  if (is_built("memcached")) {
    memcached.start();
    urls.push_back(memcached.url());
  }
  if (is_built("redis")) {
    redis.start();
    urls.push_back(redis.url());
  }
  for (const auto& url : urls) {
    const auto servers = array_of(finding_of(url), "self_test");
    ASSERT_EQ(servers.size(), 1U) << url;
    std::string steps;
    const auto all = array_of(servers[0].as_object(), "steps");
    for (const auto& value : all) {
      const auto& step = value.as_object();
      EXPECT_EQ(text(step, "result"), "passed") << text(step, "step");
      EXPECT_TRUE(step.at("reason").is_null());
      steps += (steps.empty() ? "" : ", ") + text(step, "step");
    }
    EXPECT_EQ(steps,
              "acquire, acquire as another owner, release as another owner, read back, remove");
    const auto people = finish(dlock_on(url, {"doctor"})).out;
    EXPECT_NE(people.find(": passed: " + steps), std::string::npos) << people;
  }
}

TEST(CliDoctorOfAll, RefusesAServerThatFailsTheSelfTest) {
  if (!is_built("memcached")) GTEST_SKIP() << "this build has no Memcached store";
  testkit::MemcachedServer server;
  server.start();
  const testkit::FaultProxy proxy(server.port(), testkit::careless(testkit::Ignored::add));
  const auto url = "memcached://127.0.0.1:" + std::to_string(proxy.port());
  const std::string words = "fails the self-test at step 'acquire as another owner'";
  const auto printed = finish(dlock_on(url, {"doctor", "--json"}));
  EXPECT_EQ(printed.status.shell_status(), 78) << printed.err;
  const auto findings = json::parse(printed.out);
  const auto& finding = findings.as_array().at(0).as_object();
  EXPECT_NE(text(finding, "message").find(words), std::string::npos) << printed.out;
  const auto servers = array_of(finding, "self_test");
  const auto steps = array_of(servers.at(0).as_object(), "steps");
  EXPECT_EQ(text(steps.at(0).as_object(), "result"), "passed");
  EXPECT_EQ(text(steps.at(1).as_object(), "result"), "wrong");
  const auto people = finish(dlock_on(url, {"doctor"})).out;
  EXPECT_NE(people.find("WRONG: acquire as another owner: it grants"), std::string::npos) << people;
  EXPECT_NE(people.find("REFUSED"), std::string::npos) << people;
  const auto run = finish(dlock_on(url, {"run", "x", "--", "true"}));
  EXPECT_EQ(run.status.shell_status(), 78) << run.err;
  EXPECT_NE(run.err.find(words), std::string::npos) << run.err;
  // The status of a lock needs no conditions.
  EXPECT_EQ(finish(dlock_on(url, {"status", "x"})).status.shell_status(), 0);
}

}  // namespace
}  // namespace dlock::cli_test
