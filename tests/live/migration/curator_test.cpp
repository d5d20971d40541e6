// SPDX-License-Identifier: Apache-2.0
//
// Curator, which knows nothing of migrations, on a lock that moves: it stands in ZooKeeper's queue
// when the lock is sealed before its eyes, waits as long as the record stands, whoever has the lock
// in the target meanwhile, and is the next one when the lock has come back.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "dlock/lock_manager.hpp"
#include "testkit/process.hpp"
#include "tests/live/migration/curator.hpp"
#include "tests/live/migration/stores.hpp"

namespace dlock::fleet {
namespace {

using testkit::eventually;
using testkit::patience;
using testkit::Process;

constexpr const char* kName = "orders/42";

LockManager open(const std::filesystem::path& config) {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return LockManager::from_file(config.string(), std::move(options));
}

class CuratorMigration : public testing::Test {
 protected:
  static testkit::ProcessOptions migrate(const Stores& stores, std::vector<std::string> arguments) {
    const auto& leg = Stores::legs().front();
    testkit::ProcessOptions options;
    options.argv = {DLOCK_BINARY, "--config", stores.config(leg).string(), "migrate"};
    arguments.insert(arguments.begin() + 1, leg.plan);
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    return options;
  }
  static void expect_done(const testkit::Finished& finished) {
    EXPECT_TRUE(finished.status.success()) << finished.out << finished.err;
  }

  Stores stores_;
  testkit::TempDir folder_{"dlock-curator"};
  LockManager source_ = LockManager::open(stores_.url("zk"));
  LockManager locks_ = open(stores_.config(Stores::legs().front()));
};

TEST_F(CuratorMigration, WaitsBehindTheSealAndIsTheNextWhenTheLockHasComeBack) {
  expect_done(testkit::run(migrate(stores_, {"start", "--yes"})));
  const auto lock = locks_.lock(kName);
  auto first = lock->acquire();
  ASSERT_EQ(first.store(), "zk");
  const auto waiting = [&] { return source_.status(kName).waiting.size(); };
  Process advance(migrate(stores_, {"advance", "--all", "--wait", "forever"}));
  ASSERT_TRUE(eventually(patience(), [&] { return waiting() == 1; }));
  Process foreign(
      curator(folder_.path(), stores_.zookeeper_hosts(), std::string("/first/") + kName));
  ASSERT_EQ(foreign.read_line(patience()), "tried false") << foreign.collected_stderr();
  ASSERT_TRUE(eventually(testkit::within(20s), [&] { return waiting() == 2; }))
      << advance.unread_stdout() << advance.collected_stderr() << foreign.collected_stderr();
  auto token = first.token().value();
  first.release();
  const auto sealed = advance.wait(patience());
  ASSERT_TRUE(sealed && sealed->success()) << advance.collected_stderr();

  for (int i = 0; i < 5; ++i) {
    auto handle = lock->acquire();
    EXPECT_EQ(handle.store(), "redis");
    EXPECT_GT(handle.token().value(), token);
    token = handle.token().value();
    const auto status = source_.status(kName);
    EXPECT_TRUE(status.sealed);
    EXPECT_FALSE(status.held);
    EXPECT_EQ(status.waiting.size(), 1U) << "Curator, and nobody else";
    handle.release();
  }
  EXPECT_EQ(foreign.read_line(testkit::within(0s)), std::nullopt) << "it holds behind the seal";
  EXPECT_TRUE(foreign.running());

  expect_done(testkit::run(migrate(stores_, {"rollback", "--all", "--wait", "30s"})));
  ASSERT_EQ(foreign.read_line(patience()), "held") << foreign.collected_stderr();
  // And now it is a lock like any other.
  AcquireOptions at_once;
  at_once.wait = 0s;
  error_code ec;
  EXPECT_FALSE(lock->acquire(at_once, {}, ec));
  EXPECT_EQ(ec, errc::timed_out);
  foreign.write("\n");
  EXPECT_EQ(foreign.read_line(patience()), "released") << foreign.collected_stderr();
  const auto back = lock->acquire();
  EXPECT_EQ(back.store(), "zk");
  EXPECT_GT(back.token().value(), token);
}

}  // namespace
}  // namespace dlock::fleet
