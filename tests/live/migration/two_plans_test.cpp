// SPDX-License-Identifier: Apache-2.0
//
// Two plans for the same locks, step by step as an operator would make that mistake, on real
// servers: a start that is refused is not in effect, and no plan begins where a finished one has
// left.
#include <gtest/gtest.h>

#include "testkit/process.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::fleet {
namespace {

using testkit::patience;
using testkit::Process;

constexpr int kWaits = 3;
constexpr int kRefused = 4;
constexpr int kNotInTime = 75;

class TwoPlans : public testing::Test {
 protected:
  TwoPlans() {
    zookeeper_.start();
    redis_.start();
  }

  /// The same route for either plan; `more`: of the route.
  void configure(const std::string& plan, const std::string& more = {}) const {
    const auto text =
        "stores:\n  redis: \"redis://127.0.0.1:" + std::to_string(redis_.port()) +
        "/0?lease=2s\"\n  zk: \"zookeeper://127.0.0.1:" + std::to_string(zookeeper_.port()) +
        "/locks?session_timeout=4s\"\nlocks:\n  - { match: \"billing/**\", migrate: { from: redis, "
        "to: zk, plan: " +
        plan + more + " } }\n";
    testkit::write_file(file(plan), text);
  }
  std::filesystem::path file(const std::string& plan) const { return folder_ / (plan + ".yaml"); }

  testkit::ProcessOptions with(const std::string& plan, std::vector<std::string> arguments) const {
    testkit::ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--config", file(plan).string()};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    return options;
  }
  void expect(int status, const std::string& plan, std::vector<std::string> arguments,
              std::string_view part = {}) const {
    std::string line = "dlock";
    for (const auto& word : arguments) line += ' ' + word;
    const auto ended = testkit::run(with(plan, std::move(arguments)));
    const auto said = ended.out + ended.err;
    EXPECT_EQ(ended.status.shell_status(), status) << line << ": " << said;
    EXPECT_NE(said.find(part), std::string::npos) << line << ": no '" << part << "' in: " << said;
  }
  /// A program of that plan's route that holds it until its input ends.
  std::unique_ptr<Process> holder(const std::string& plan, const std::string& name) const {
    auto process = std::make_unique<Process>(with(plan, {"hold", name, "--wait", "30s"}));
    const auto line = process->read_line(patience());
    EXPECT_TRUE(line && line->find("\"held\"") != std::string::npos)
        << line.value_or("-") << process->collected_stderr();
    return process;
  }
  static void leave(Process& process) {
    process.close_stdin();
    const auto ended = process.wait(patience());
    EXPECT_TRUE(ended && ended->success()) << process.collected_stderr();
  }
  /// Nothing is known of it.
  void expect_no_trace(const std::string& plan) const {
    for (const auto* const verb : {"status", "advance", "rollback", "finish"}) {
      std::vector<std::string> arguments{"migrate", verb, plan};
      if (std::string_view(verb) != "status") arguments.emplace_back("--all");
      expect(kRefused, plan, std::move(arguments), "was not started");
    }
  }

  testkit::TempDir folder_{"dlock-two-plans"};
  testkit::ZooKeeperServer zookeeper_;
  testkit::RedisServer redis_{{"--appendonly", "yes", "--appendfsync", "always"}};
};

TEST_F(TwoPlans, TheSecondIsRefusedWithoutATraceUntilTheFirstIsBack) {
  configure("plana");
  configure("planb");
  const auto first = holder("plana", "billing/x");
  expect(0, "plana", {"migrate", "start", "plana"});
  for (const auto* const verb : {"plan", "start", "start"}) {
    expect(kRefused, "planb", {"migrate", verb, "planb"}, "belongs to the unfinished plan 'plana'");
  }
  expect_no_trace("planb");
  expect(kNotInTime, "planb", {"hold", "billing/x", "--wait", "500ms"});
  leave(*first);

  expect(0, "plana", {"migrate", "advance", "plana", "--all", "--wait", "30s"});
  const auto moved = holder("plana", "billing/x");
  expect(kRefused, "planb", {"migrate", "start", "planb"}, "plana");
  expect_no_trace("planb");
  const auto other = testkit::run(with("planb", {"hold", "billing/x", "--wait", "500ms"}));
  EXPECT_FALSE(other.status.success()) << other.out << other.err;
  leave(*moved);

  expect(0, "plana", {"migrate", "finish", "plana", "--all", "--wait", "30s"}, "is finished");
  const auto home = holder("plana", "billing/x");
  for (const auto* const verb : {"plan", "start"}) {
    expect(kRefused, "planb", {"migrate", verb, "planb"}, "plan 'plana' has taken");
  }
  expect(kRefused, "plana", {"migrate", "start", "plana"}, "finished before");
  expect_no_trace("planb");
  leave(*home);
}

TEST_F(TwoPlans, WithAGateTheSecondIsRefusedWithoutATraceUntilTheFirstIsBack) {
  for (const auto* const plan : {"plana", "planb"}) configure(plan, ", gate: zk");
  expect(0, "plana", {"migrate", "start", "plana", "--gate-lease", "500ms"});
  const auto first = holder("plana", "billing/x");
  for (const auto* const verb : {"plan", "start", "start"}) {
    expect(kRefused, "planb", {"migrate", verb, "planb"}, "belongs to the unfinished plan 'plana'");
  }
  expect_no_trace("planb");
  for (const auto* const name : {"billing/x", "billing/y"}) {
    const auto other = testkit::run(with("planb", {"hold", name, "--wait", "500ms"}));
    EXPECT_FALSE(other.status.success()) << other.out << other.err;
  }

  expect(kWaits, "plana", {"migrate", "advance", "plana"}, "then in 'zk'");
  expect(0, "plana", {"migrate", "advance", "plana", "--legacy-gone"}, "in 'zk'");
  expect(kRefused, "planb", {"migrate", "start", "planb"}, "plana");
  expect(0, "plana", {"migrate", "finish", "plana"}, "is finished");
  leave(*first);
  const auto last = holder("plana", "billing/x");
  for (const auto* const verb : {"plan", "start"}) {
    expect(kRefused, "planb", {"migrate", verb, "planb"}, "plan 'plana' has taken");
  }
  expect(kRefused, "plana", {"migrate", "start", "plana"}, "finished");
  expect_no_trace("planb");
  for (const auto* const name : {"billing/x", "billing/y"}) {
    const auto other = testkit::run(with("planb", {"hold", name, "--wait", "500ms"}));
    EXPECT_FALSE(other.status.success()) << other.out << other.err;
  }
  leave(*last);
}

}  // namespace
}  // namespace dlock::fleet
