// SPDX-License-Identifier: Apache-2.0
//
// docs/migration.md, step by step: what it tells its readers to do, done on real servers.
#include <gtest/gtest.h>

#include <fstream>

#include "dlock/lock_manager.hpp"
#include "testkit/process.hpp"
#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/live/migration/curator.hpp"
#include "tests/support/manual.hpp"

namespace dlock::fleet {
namespace {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::Finished;
using testkit::patience;
using testkit::Process;

using Command = std::vector<std::string>;

bool says(const Finished& finished, std::string_view text) {
  return (finished.out + finished.err).find(text) != std::string::npos;
}

class MigrationGuide : public testing::Test {
 protected:
  MigrationGuide() {
    zookeeper_.start();
    redis_.start();
  }

  /// The manual's configuration, with our servers' addresses.
  void configure(const std::string& stores, const std::string& route) const {
    testkit::write_file(config_, "stores:\n" + stores + "locks:\n  - { match: \"billing/**\", " +
                                     "migrate: " + route + " }\n");
  }
  std::string zookeeper_url(const std::string& root) const {
    return "zookeeper://127.0.0.1:" + std::to_string(zookeeper_.port()) + root;
  }
  std::string redis_url() const {
    return "redis://127.0.0.1:" + std::to_string(redis_.port()) + "/0";
  }
  static std::vector<Command> commands(std::string_view heading) {
    return testkit::manual_commands(std::string(DLOCK_DOCS) + "/migration.md", heading);
  }
  testkit::ProcessOptions program(Command command) const {
    if (command.front() == "redis-cli") {
      command.insert(command.begin() + 1, {"-p", std::to_string(redis_.port())});
    } else {
      command.insert(command.begin(), {DLOCK_BINARY, "--config", config_.string()});
    }
    testkit::ProcessOptions options;
    options.argv = std::move(command);
    return options;
  }
  Finished run(const Command& command) const {
    auto finished = testkit::run(program(command));
    EXPECT_TRUE(finished.status.success())
        << command[0] << ' ' << command[1] << ": " << finished.out << finished.err;
    return finished;
  }
  LockManager open() const {
    auto options = OpenOptions::built_in();
    options.log = [](LogLevel, std::string_view) {};
    return LockManager::from_file(config_.string(), std::move(options));
  }

  testkit::TempDir folder_{"dlock-guide"};
  std::filesystem::path config_ = folder_ / "dlock.yaml";
  testkit::ZooKeeperServer zookeeper_;
  testkit::RedisServer redis_;
};

TEST_F(MigrationGuide, FromACuratorFleet) {
  configure("  zk: \"" + zookeeper_url("/locks") + "\"\n  redis: { url: \"" + redis_url() +
                "\", lease: 30s }\n",
            "{ from: zk, to: redis, plan: billing-2026 }");
  const auto hosts = "127.0.0.1:" + std::to_string(zookeeper_.port());
  const auto all = commands("From a Curator fleet");
  ASSERT_EQ(all.size(), 6U);

  Process first(curator(folder_.path(), hosts, "/locks/billing/7"));
  ASSERT_EQ(first.read_line(patience()), "tried true") << first.collected_stderr();
  ASSERT_EQ(first.read_line(patience()), "held");
  auto locks = open();
  const auto lock = locks.lock("billing/7");
  AcquireOptions at_once;
  at_once.wait = 0s;
  error_code ec;
  EXPECT_FALSE(lock->acquire(at_once, {}, ec)) << "Curator holds it";
  EXPECT_EQ(ec, errc::timed_out);

  EXPECT_TRUE(says(run(all[0]), "billing/7"));
  run(all[1]);
  run(all[2]);
  LockManager source = LockManager::open(zookeeper_url("/locks"));
  const auto waiting = [&] { return source.status("billing/7").waiting.size(); };
  Process advance(program(all[3]));
  ASSERT_TRUE(eventually(patience(), [&] { return waiting() == 1; })) << advance.collected_stderr();
  Process laggard(curator(folder_.path(), hosts, "/locks/billing/7"));
  ASSERT_EQ(laggard.read_line(patience()), "tried false") << laggard.collected_stderr();
  ASSERT_TRUE(eventually(patience(), [&] { return waiting() == 2; })) << laggard.collected_stderr();
  first.close_stdin();
  ASSERT_EQ(first.read_line(patience()), "released") << first.collected_stderr();
  const auto moved = advance.wait(patience());
  ASSERT_TRUE(moved && moved->success()) << advance.collected_stderr();
  EXPECT_TRUE(says(run(all[4]), "waits in 'zk' and does not take part"));
  {
    const auto handle = lock->acquire();
    EXPECT_EQ(handle.store(), "redis");
    EXPECT_EQ(laggard.read_line(testkit::within(0s)), std::nullopt);
  }
  EXPECT_TRUE(says(run(all[5]), "finished"));
  EXPECT_EQ(laggard.read_line(testkit::within(0s)), std::nullopt);
  EXPECT_TRUE(laggard.running());
}

TEST_F(MigrationGuide, FromRedisToZooKeeperAfterAnIncident) {
  configure("  redis: { url: \"" + redis_url() + "\", lease: 30s }\n  zk: { url: \"" +
                zookeeper_url("/") + "\", require: exclusive }\n",
            "{ from: redis, to: zk, plan: leave-redis }");
  const auto all = commands("From Redis to ZooKeeper after an incident");
  ASSERT_EQ(all.size(), 7U);
  std::uint64_t token = 0;
  {
    auto locks = open();
    const auto handle = locks.lock("billing/7")->acquire();
    EXPECT_EQ(handle.store(), "redis");
    token = handle.token().value();
    run(all[0]);
    const auto refused = testkit::run(program(all[3]));
    EXPECT_EQ(refused.status.shell_status(), 4) << refused.out;
    EXPECT_TRUE(says(refused, "appendfsync always")) << refused.out << refused.err;
    run(all[1]);
    run(all[2]);
    run(all[3]);
    run(all[4]);
  }
  run(all[5]);
  auto locks = open();
  auto handle = locks.lock("billing/7")->acquire();
  EXPECT_EQ(handle.store(), "zk");
  EXPECT_GT(handle.token().value(), token);
  handle.release();
  EXPECT_TRUE(says(run(all[6]), "finished"));
}

}  // namespace
}  // namespace dlock::fleet
