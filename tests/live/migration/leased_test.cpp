// SPDX-License-Identifier: Apache-2.0
//
// A plan with a leased gate, step by step, from stores that may forget.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>

#include "tests/live/migration/leased_operator.hpp"
#include "tests/support/manual.hpp"

namespace dlock::fleet {
namespace {

namespace json = boost::json;
using testkit::eventually;
using testkit::patience;
using testkit::Process;

const std::string kName = "billing/7";

testkit::ProcessOptions hold(const std::filesystem::path& config) {
  return dlock_program(config, {"hold", kName, "--wait", "20s"});
}

json::object read_event(Process& process) {
  const auto line = process.read_line(patience());
  if (!line) {
    ADD_FAILURE() << "no line; stderr: " << process.collected_stderr();
    return {};
  }
  return json::parse(*line).as_object();
}

/// The token of a program that holds the lock and releases it.
std::int64_t token_of_hold(const std::filesystem::path& config, const std::string& store) {
  Process process(hold(config));
  const auto held = read_event(process);
  if (held.empty()) return 0;
  EXPECT_EQ(held.at("store").as_string(), store);
  process.close_stdin();
  const auto status = process.wait(patience());
  EXPECT_TRUE(status && status->success()) << process.collected_stderr();
  return held.at("token").to_number<std::int64_t>();
}

// A program without the route is one of dlock, or one that writes the same keys.
TEST(LeasedMigration, ProgramsWithoutTheRouteAreListedAndPreventTheTurnToTheTarget) {
  LeasedStores stores("redis", "zookeeper");
  const LeasedOperator by(stores);
  by.start(500ms);
  Process legacy(hold(stores.legacy()));
  ASSERT_FALSE(read_event(legacy).empty());
  by.both();
  const auto pid = "pid " + std::to_string(legacy.pid()) + " on";
  by.expect(0, {"status"}, pid);
  by.expect(kExitWaits, {"advance"}, "--legacy-gone");
  by.expect(kExitRefused, {"advance", "--legacy-gone"}, pid);
  legacy.close_stdin();
  ASSERT_TRUE(legacy.wait(patience()));

  // As redis-py writes it.
  const auto set = "SET dlock:{" + kName + "} 0123456789abcdef NX PX 5000\r\nQUIT\r\n";
  const auto answer = testkit::ask(stores.source().port(), set, "OK\r\n+OK", patience());
  ASSERT_EQ(answer.substr(0, 3), "+OK") << answer;
  by.expect(0, {"status"}, kName);
  by.expect(kExitRefused, {"advance", "--legacy-gone"}, kName);
  ASSERT_TRUE(eventually(patience(), [&] {
    const auto step = by.migrate({"advance", "--legacy-gone", "--wait", "0"});
    return step.status.shell_status() != kExitRefused;
  }));
  // This command has seen the gate once, so it must wait.
  by.expect(kExitWaits, {"advance", "--legacy-gone", "--wait", "0"}, "--wait above");
  by.target_alone();
}

TEST(LeasedMigration, EveryStateHasAWayBackAndTokensRise) {
  const LeasedStores stores("memcached", "zookeeper");
  const LeasedOperator by(stores);
  std::int64_t last = 0;
  const auto rises = [&](const std::string& store) {
    const auto token = token_of_hold(stores.route(), store);
    EXPECT_GT(token, last) << by.state();
    last = token;
  };
  by.start(500ms);
  by.start(500ms);  // again
  rises("cache");
  by.both();
  rises("cache");
  by.turn({"rollback"}, "S_ALONE");
  rises("cache");
  by.both();
  by.target_alone();
  rises("home");
  by.turn({"rollback", "--wait", "0"}, "T_THEN_S");
  rises("home");
  by.turn({"advance"}, "T_ALONE");
  rises("home");
  by.expect(0, {"rollback"});
  EXPECT_EQ(by.state(), "S_ALONE");
  rises("cache");
  by.expect(kExitRefused, {"finish"}, "advance");
  by.expect(0, {"rollback", "--all", "--withdraw"}, "is withdrawn");
  rises("cache");

  by.start(500ms);  // the same plan once more
  rises("cache");
  by.both();
  by.target_alone();
  rises("home");
  by.expect(0, {"finish"}, "is finished");
  by.expect(0, {"finish"}, "is finished");  // again
  by.expect(kExitRefused, {"rollback"}, "cannot be rolled back");
  rises("home");
  EXPECT_GT(token_of_hold(stores.home(), "home"), last);
}

TEST(LeasedMigration, AHolderThatWasStoppedPastTheGateLeaseHasLostTheLock) {
  const LeasedStores stores("memcached", "zookeeper");
  const LeasedOperator by(stores);
  by.start(1s);
  Process stopped(hold(stores.route()));
  const auto held = read_event(stopped);
  ASSERT_FALSE(held.empty());
  ASSERT_TRUE(stopped.pause());
  by.both();
  by.target_alone();  // waits for longer than the gate lease
  EXPECT_GT(token_of_hold(stores.route(), "home"), held.at("token").to_number<std::int64_t>());
  ASSERT_TRUE(stopped.resume());
  auto event = read_event(stopped);
  while (!event.empty() && event.at("event").as_string() != "lost") event = read_event(stopped);
  ASSERT_FALSE(event.empty());
  // The lease in the source can be over as well.
  const auto reason = event.at("reason").as_string();
  EXPECT_TRUE(reason == "gate_not_confirmed" || reason == "expired") << reason;
  const auto status = stopped.wait(patience());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->shell_status(), kExitLost);
}

/// The page's section, with the addresses of these servers.
class LeasedManual {
 public:
  LeasedManual() {
    const auto page = std::string(DLOCK_DOCS) + "/migration.md";
    constexpr const char* kSection = "When the source forgets";
    commands_ = testkit::manual_commands(page, kSection);
    const auto blocks = testkit::manual_configurations(page, kSection);
    if (blocks.size() != 1) throw std::runtime_error("the section has other configurations");
    const auto route = testkit::with_stores(
        blocks[0], {{"cache", stores_.url("cache")}, {"zk", stores_.url("home")}});
    const auto entry = route.substr(0, route.find("migrate:"));
    testkit::write_file(this->route(), route);
    testkit::write_file(before(), entry + "store: cache }\n");
    testkit::write_file(afterwards(), entry + "store: zk }\n");
  }

  LeasedStores& stores() { return stores_; }
  std::filesystem::path route() const { return folder_ / "dlock.yaml"; }
  std::filesystem::path before() const { return folder_ / "before.yaml"; }
  std::filesystem::path afterwards() const { return folder_ / "afterwards.yaml"; }

  std::size_t commands() const { return commands_.size(); }
  void run(std::size_t number, int status, std::string_view part) const {
    const auto& command = commands_.at(number);
    const auto finished = testkit::run(dlock_program(route(), command));
    EXPECT_EQ(finished.status.shell_status(), status)
        << command[1] << ": " << finished.out << finished.err;
    EXPECT_NE((finished.out + finished.err).find(part), std::string::npos)
        << command[1] << ": no '" << part << "': " << finished.out << finished.err;
  }

 private:
  LeasedStores stores_{"memcached", "zookeeper"};
  testkit::TempDir folder_{"dlock-leased-manual"};
  std::vector<std::vector<std::string>> commands_;
};

TEST(LeasedMigration, TheManualsCommandsMoveAFleetFromMemcachedToZooKeeper) {
  LeasedManual manual;
  ASSERT_EQ(manual.commands(), 6U);
  const StoreView zookeeper(manual.stores().url("home"));
  auto first = open_quietly(manual.route());
  EXPECT_EQ(refusal(first, kName, 0s), errc::no_gate);
  auto legacy = open_quietly(manual.before());
  auto legacy_hold = acquire(legacy, "billing/9");

  manual.run(0, 0, "next: dlock migrate start leave-cache");
  manual.run(1, 0, "locks are acquired in 'cache'");
  // The programs get the route one by one.
  auto long_hold = acquire(first, kName);
  EXPECT_EQ(long_hold.store(), "cache");
  EXPECT_EQ(refusal(legacy, kName, 0s), errc::timed_out);
  EXPECT_EQ(refusal(first, "billing/9", 0s), errc::timed_out);
  auto last = open_quietly(manual.route());
  EXPECT_EQ(acquire(last, "billing/8").store(), "cache");

  manual.run(2, kExitWaits, "locks are acquired in 'cache', then in 'zk'");
  manual.run(3, 0, "locks are acquired in 'cache', then in 'zk'");
  legacy_hold.release();
  legacy.close();
  ASSERT_TRUE(zookeeper.await(kName, true));
  manual.run(4, 0, "locks are acquired in 'zk'");
  EXPECT_EQ(long_hold.state(), HandleState::held) << "through both turns";
  EXPECT_EQ(refusal(last, kName, 0s), errc::timed_out);
  const auto token = long_hold.token().value_or(0);
  auto early = open_quietly(manual.afterwards());
  EXPECT_EQ(refusal(early, "billing/10", 0s), errc::config_unsafe);

  manual.run(5, 0, "plan leave-cache is finished");
  auto home = open_quietly(manual.afterwards());
  EXPECT_EQ(refusal(home, kName, 0s), errc::timed_out);
  manual.stores().source().stop();
  EXPECT_EQ(long_hold.state(), HandleState::held);
  long_hold.release();
  const auto next = acquire(home, kName);
  EXPECT_EQ(next.store(), "zk");
  EXPECT_GT(next.token().value_or(0), token);
  EXPECT_EQ(refusal(last, kName, 0s), errc::timed_out);
}

// The page says so. Programs have read the gate.
TEST(LeasedMigration, AfterTheTurnToBothNoFlushAndNoRestartOfTheSourceLetsTwoHold) {
  LeasedStores stores("memcached", "zookeeper");
  const LeasedOperator by(stores);
  by.start(500ms);
  by.both();
  auto first = open_quietly(stores.route());
  auto second = open_quietly(stores.route());
  for (const bool by_restart : {false, true}) {
    auto held = acquire(first, kName);
    ASSERT_TRUE(StoreView(stores.url("home")).await(kName, true));
    stores.wipe(by_restart);
    // Its lock in the target keeps the others out until it knows of the loss.
    while (held.state() != HandleState::lost) {
      error_code ec;
      const auto next = second.lock(kName)->try_acquire({.wait = 0s}, {}, ec);
      const bool is_still_held = held.state() != HandleState::lost;
      ASSERT_FALSE(next && is_still_held) << "two hold it";
      ASSERT_NE(held.loss_reason(), LossReason::gate_not_confirmed);
    }
    held.release();
    EXPECT_EQ(acquire(second, kName).store(), "cache");
  }
}

}  // namespace
}  // namespace dlock::fleet
