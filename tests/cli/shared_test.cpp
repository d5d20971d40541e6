// SPDX-License-Identifier: Apache-2.0
//
// `--shared`: readers together, a writer alone, and what is told of them.
#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

int status_under(const std::string& url, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  return finish(dlock_on(url, std::move(arguments))).status.shell_status();
}

void run_readers_and_a_writer(const std::string& url) {
  Process first(dlock_on(url, {"hold", "x", "--shared"}));
  const auto held = read_event(first);
  EXPECT_EQ(text(held, "event"), "held");
  EXPECT_NE(text(held, "sequencer").find(":shared:"), std::string::npos);
  Process second(dlock_on(url, {"hold", "x", "--shared"}));
  EXPECT_EQ(text(read_event(second), "event"), "held");
  EXPECT_EQ(status_under(url, {"x", "--wait", "0", "--", "true"}), 75);
  EXPECT_EQ(status_under(url, {"x", "--wait", "0", "--shared", "--", "true"}), 0);

  const auto shown = finish(dlock_on(url, {"status", "x"}));
  EXPECT_NE(shown.out.find("held by 2 readers"), std::string::npos) << shown.out;
  const auto json = finish(dlock_on(url, {"status", "x", "--json"}));
  EXPECT_NE(json.out.find(R"("mode":"shared")"), std::string::npos) << json.out;
  const auto listed = finish(dlock_on(url, {"list"}));
  EXPECT_NE(listed.out.find("2 readers"), std::string::npos) << listed.out;

  first.close_stdin();
  second.close_stdin();
  Process writer(dlock_on(url, {"hold", "x"}));
  EXPECT_EQ(text(read_event(writer), "event"), "held");
  EXPECT_EQ(status_under(url, {"x", "--wait", "0", "--shared", "--", "true"}), 75);
}

TEST(CliShared, ReadersRunTogetherAndAWriterAlone) {
  const LocalStore store;
  run_readers_and_a_writer(store.url());
}

TEST(CliShared, OnRedisAsWell) {
  testkit::RedisServer server;
  server.start();
  run_readers_and_a_writer("redis://127.0.0.1:" + std::to_string(server.port()) + "/0");
}

// Nobody listens there: what cannot be is refused before anybody is asked.
TEST(CliShared, AStoreWithoutItRefusesAtOnceAndNamesTheRemedy) {
  const auto* const url = "memcached://127.0.0.1:1";
  const auto result = finish(dlock_on(url, {"run", "x", "--shared", "--", "true"}));
  EXPECT_EQ(result.status.shell_status(), 64) << result.err;
  EXPECT_NE(result.err.find("exclusive locks only"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("zookeeper, redis"), std::string::npos) << result.err;
}

TEST(CliShared, AWriterWithinAReaderOfItsOwnIsRefused) {
  const LocalStore store;
  const std::string dlock = DLOCK_BINARY;
  const auto within = [&](std::vector<std::string> inner) {
    std::vector<std::string> arguments = {"x",       "--shared",  "--",  dlock,
                                          "--store", store.url(), "run", "x"};
    arguments.insert(arguments.end(), inner.begin(), inner.end());
    return status_under(store.url(), arguments);
  };
  EXPECT_EQ(within({"--", "true"}), 64);
  EXPECT_EQ(within({"--nested", "--", "true"}), 64) << "a writer's work under a reader's lock";
  EXPECT_EQ(within({"--nested", "--shared", "--", "true"}), 0);
}

}  // namespace
}  // namespace dlock::cli_test
