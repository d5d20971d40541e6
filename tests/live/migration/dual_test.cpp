// SPDX-License-Identifier: Apache-2.0
//
// Mode dual, step by step, from stores that forget to ZooKeeper: who is named and waited for, who
// is turned away, and the way back from everywhere.
#include <gtest/gtest.h>

#include <array>
#include <boost/json.hpp>
#include <memory>

#include "dlock/lock_manager.hpp"
#include "testkit/process.hpp"
#include "tests/live/migration/dual_stores.hpp"
#include "tests/support/manual.hpp"

namespace dlock::fleet {
namespace {

namespace json = boost::json;
using testkit::eventually;
using testkit::Finished;
using testkit::patience;
using testkit::Process;

constexpr int kWaits = 3;
constexpr int kRefused = 4;
constexpr int kConfig = 78;
const std::string kName = "billing/7";

bool says(const Finished& finished, std::string_view text) {
  return (finished.out + finished.err).find(text) != std::string::npos;
}

class Dual {
 public:
  explicit Dual(const std::string& source) : stores_(source) {}

  DualStores& stores() { return stores_; }
  Finished migrate(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "migrate");
    return testkit::run(program(stores_.config(1), std::move(arguments)));
  }
  void expect(int status, std::vector<std::string> arguments, std::string_view part = {}) const {
    std::string line;
    for (const auto& word : arguments) line += word + ' ';
    const auto finished = migrate(std::move(arguments));
    EXPECT_EQ(finished.status.shell_status(), status) << line << finished.out << finished.err;
    EXPECT_TRUE(says(finished, part)) << line << "says: " << finished.out << finished.err;
  }
  /// The window's next step, which needs no flag that nobody has given.
  void step(const std::string& verb, int lo, int hi) const {
    expect(0, {verb, kDualPlan, "--legacy-gone", "--wait", "20s"});
    EXPECT_EQ(window(), std::pair(lo, hi)) << verb;
  }
  std::pair<int, int> window() const {
    const auto status = migrate({"status", kDualPlan, "--json"});
    json::error_code error;
    const auto value = json::parse(status.out, error);
    if (error || !value.is_object()) {
      ADD_FAILURE() << status.out << status.err;
      return {-1, -1};
    }
    const auto& window = value.at("window").as_object();
    return {window.at("lo").to_number<int>(), window.at("hi").to_number<int>()};
  }
  static testkit::ProcessOptions program(const std::filesystem::path& config,
                                         std::vector<std::string> arguments) {
    testkit::ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--config", config.string()};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.unset_env = {"DLOCK_CONFIG", "DLOCK_STORE"};
    return options;
  }
  static testkit::ProcessOptions hold(const std::filesystem::path& config,
                                      const std::string& name = kName) {
    return program(config, {"hold", name, "--wait", "20s"});
  }

 private:
  DualStores stores_;
};

json::object read_event(Process& process) {
  const auto line = process.read_line(patience());
  if (!line) {
    ADD_FAILURE() << "no line; stderr: " << process.collected_stderr();
    return {};
  }
  return json::parse(*line).as_object();
}

/// Held and given back: the token.
std::int64_t once(const std::filesystem::path& config, const std::string& store) {
  Process process(Dual::hold(config));
  const auto held = read_event(process);
  if (held.empty()) return 0;
  EXPECT_EQ(held.at("store").as_string(), store);
  process.close_stdin();
  const auto status = process.wait(patience());
  EXPECT_TRUE(status && status->success()) << process.collected_stderr();
  return held.at("token").to_number<std::int64_t>();
}

// Programs without the plan's route: dlock, or whoever writes the same keys.
TEST(DualMigration, ProgramsThatAreNotRegisteredAreListedAndBarTheWay) {
  Dual dual("redis");
  dual.expect(0, {"plan", kDualPlan, kName});
  dual.expect(0, {"start", kDualPlan, kName});
  Process legacy(Dual::hold(dual.stores().legacy_config()));
  ASSERT_FALSE(read_event(legacy).empty());
  dual.expect(0, {"advance", kDualPlan});
  dual.expect(0, {"advance", kDualPlan});
  ASSERT_EQ(dual.window(), std::pair(1, 1));

  const auto pid = "pid " + std::to_string(legacy.pid()) + " on";
  dual.expect(0, {"status", kDualPlan}, pid);
  dual.expect(kRefused, {"advance", kDualPlan}, "--legacy-gone");
  dual.expect(kRefused, {"advance", kDualPlan, "--legacy-gone", "--wait", "20s"}, pid);
  legacy.close_stdin();
  ASSERT_TRUE(legacy.wait(patience()));

  // As redis-py does it.
  const auto set = "SET dlock:{" + kName + "} 0123456789abcdef NX PX 5000\r\nQUIT\r\n";
  const auto said = testkit::ask(dual.stores().source().port(), set, "OK\r\n+OK", patience());
  ASSERT_EQ(said.substr(0, 3), "+OK") << said;
  dual.expect(0, {"status", kDualPlan}, kName);
  dual.expect(kRefused, {"advance", kDualPlan, "--legacy-gone", "--wait", "20s"}, kName);
  ASSERT_TRUE(eventually(patience(), [&] {
    const auto step = dual.migrate({"advance", kDualPlan, "--legacy-gone", "--wait", "0"});
    return step.status.shell_status() != kRefused;
  }));
  // Gone, and for how long is not known to a command that has just begun.
  dual.expect(kWaits, {"advance", kDualPlan, "--legacy-gone", "--wait", "0"}, "--wait more than");
  dual.expect(0, {"advance", kDualPlan, "--legacy-gone", "--wait", "20s"});
  EXPECT_EQ(dual.window(), std::pair(1, 2));
}

TEST(DualMigration, APhaseThatIsClosedIsTurnedAwayWithTheReason) {
  Dual dual("memcached");
  dual.expect(0, {"start", kDualPlan, kName});
  const auto first = once(dual.stores().config(0), "cache");
  dual.expect(0, {"advance", kDualPlan});
  Process old(Dual::hold(dual.stores().config(0)));
  ASSERT_FALSE(read_event(old).empty());
  // Not before the last of them has left.
  dual.expect(kWaits, {"advance", kDualPlan, "--wait", "0"},
              "pid " + std::to_string(old.pid()) + " on");
  old.close_stdin();
  ASSERT_TRUE(old.wait(patience()));
  dual.expect(0, {"advance", kDualPlan, "--wait", "20s"});
  ASSERT_EQ(dual.window(), std::pair(1, 1));

  const auto late = testkit::run(Dual::hold(dual.stores().config(0)));
  EXPECT_EQ(late.status.shell_status(), kConfig) << late.err;
  EXPECT_TRUE(says(late, "phase: 1")) << late.err;
  EXPECT_GT(once(dual.stores().config(1), "zk"), first);

  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  auto locks = LockManager::from_file(dual.stores().config(2).string(), std::move(options));
  error_code ec;
  Diagnostics why;
  AcquireOptions acquire;
  acquire.wait = 20s;
  acquire.diagnostics = &why;
  EXPECT_FALSE(locks.lock(kName)->acquire(acquire, {}, ec));
  EXPECT_EQ(ec, errc::window_closed) << ec.message() << ": " << why.server_text;
  EXPECT_NE(why.server_text.find(kDualPlan), std::string::npos) << why.server_text;
}

TEST(DualMigration, ThereIsAWayBackFromEveryWindow) {
  Dual dual("memcached");
  std::int64_t last = 0;
  const auto rises = [&](int phase) {
    const auto token = once(dual.stores().config(phase), phase == 0 ? "cache" : "zk");
    EXPECT_GT(token, last) << "phase " << phase;
    last = token;
  };
  dual.expect(0, {"start", kDualPlan, kName});
  dual.expect(0, {"start", kDualPlan, kName});  // again
  rises(0);
  dual.step("advance", 0, 1);
  rises(1);
  rises(0);
  dual.step("rollback", 0, 0);
  rises(0);
  dual.step("advance", 0, 1);
  dual.step("advance", 1, 1);
  rises(1);
  dual.step("rollback", 0, 1);
  rises(0);
  rises(1);
  dual.step("advance", 1, 1);
  dual.step("advance", 1, 2);
  rises(2);
  rises(1);
  dual.step("rollback", 1, 1);
  rises(1);
  dual.step("advance", 1, 2);
  dual.step("advance", 2, 2);
  rises(2);
  dual.step("rollback", 1, 2);
  rises(1);
  dual.step("advance", 2, 2);
  dual.expect(0, {"finish", kDualPlan});
  dual.expect(0, {"finish", kDualPlan});  // again
  dual.expect(kRefused, {"rollback", kDualPlan});
  const auto home = once(dual.stores().home_config(), "zk");
  EXPECT_GT(home, last);
}

/// Two programs that an operator restarts one by one.
class Programs {
 public:
  void restart(const std::filesystem::path& config, const std::string& store) {
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      auto& program = programs_[i];
      if (program) {
        program->close_stdin();
        const auto ended = program->wait(patience());
        EXPECT_TRUE(ended && ended->success()) << program->collected_stderr();
      }
      program = std::make_unique<Process>(Dual::hold(config, "billing/" + std::to_string(7 + i)));
      const auto held = read_event(*program);
      ASSERT_FALSE(held.empty());
      EXPECT_EQ(held.at("store").as_string(), store);
      const auto token = held.at("token").to_number<std::int64_t>();
      EXPECT_GT(token, last_[i]) << config;
      last_[i] = token;
    }
  }

 private:
  std::array<std::unique_ptr<Process>, 2> programs_;
  std::array<std::int64_t, 2> last_{};
};

TEST(DualMigration, TheManualsCommandsDoWhatItSays) {
  Dual dual("memcached");
  const auto all = testkit::manual_commands(std::string(DLOCK_DOCS) + "/migration.md",
                                            "When the source forgets: mode dual");
  ASSERT_EQ(all.size(), 8U);
  const auto run = [&](std::size_t i, std::string_view part) {
    const auto finished = testkit::run(Dual::program(dual.stores().config(1), all[i]));
    EXPECT_TRUE(finished.status.success()) << all[i][1] << finished.out << finished.err;
    EXPECT_TRUE(says(finished, part)) << all[i][1] << finished.out << finished.err;
  };
  Programs programs;
  programs.restart(dual.stores().legacy_config(), "cache");
  run(0, "next: dlock migrate start leave-cache");
  run(1, "phase: 0");
  programs.restart(dual.stores().config(0), "cache");
  run(2, "phase: 1");
  programs.restart(dual.stores().config(1), "zk");
  run(3, "");
  run(4, "2 registered");
  run(5, "phase: 2");
  programs.restart(dual.stores().config(2), "zk");
  run(6, "");
  const auto early = testkit::run(Dual::hold(dual.stores().home_config(), "billing/9"));
  EXPECT_EQ(early.status.shell_status(), kConfig) << early.err;
  run(7, "finished");
  programs.restart(dual.stores().home_config(), "zk");
}

}  // namespace
}  // namespace dlock::fleet
