// SPDX-License-Identifier: Apache-2.0
//
// Exclusion as a script sees it: many processes increment a number in a plain file under
// `dlock run`, and none is lost.
#include <memory>

#include "testkit/servers/redis.hpp"
#include "testkit/servers/zookeeper.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

constexpr int kProcesses = 8;
constexpr int kIncrements = 50;

void count_to(const std::string& url, const testkit::TempDir& folder) {
  const auto counter = (folder / "counter").string();
  testkit::write_file(counter, "0\n");
  // Read, think, write: without the lock, most increments would be lost.
  testkit::write_file(folder / "increment",
                      "n=$(cat " + counter + "); sleep 0.001; echo $((n + 1)) > " + counter + "\n");
  const std::string loop = "for i in $(seq " + std::to_string(kIncrements) + "); do " +
                           dlock_binary() + " --store '" + url + "' run counter -- sh " +
                           (folder / "increment").string() + " || exit 1; done";
  std::vector<std::unique_ptr<Process>> workers;
  workers.reserve(kProcesses);
  for (int i = 0; i < kProcesses; ++i) {
    workers.push_back(
        std::make_unique<Process>(testkit::ProcessOptions{.argv = {"sh", "-c", loop}}));
  }
  for (auto& worker : workers) {
    const auto ended = worker->wait(within(240s));
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->shell_status(), 0) << worker->collected_stderr();
    EXPECT_EQ(worker->collected_stderr(), "");
  }
  EXPECT_EQ(testkit::read_file(counter), std::to_string(kProcesses * kIncrements) + "\n");
}

TEST(CliCounter, LosesNoneOnTheLocalStore) {
  const LocalStore store;
  count_to(store.url(), store.folder());
}

TEST(CliCounter, LosesNoneOnZooKeeper) {
  testkit::ZooKeeperServer server;
  server.start();
  const testkit::TempDir folder("dlock-cli-test");
  count_to(server.url() + "app", folder);
}

TEST(CliCounter, LosesNoneOnRedis) {
  // As exclusion needs it; with less, each command would warn.
  testkit::RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
  server.start();
  const testkit::TempDir folder("dlock-cli-test");
  count_to(server.url() + "?require=exclusive", folder);
}

}  // namespace
}  // namespace dlock::cli_test
