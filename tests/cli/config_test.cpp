// SPDX-License-Identifier: Apache-2.0
//
// What a user sees of a wrong configuration: exit 78 and one message with file, line and remedy.
#include <algorithm>

#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

struct BadConfig {
  const char* name;
  const char* yaml;  ///< @ stands for the folder
  const char* place;
  const char* remedy;
};

class CliConfig : public testing::TestWithParam<BadConfig> {};

TEST_P(CliConfig, IsRefusedWithPlaceAndRemedy) {
  const testkit::TempDir folder("dlock-cli-test");
  const auto file = (folder / "dlock.yaml").string();
  std::string yaml = GetParam().yaml;
  for (auto at = yaml.find('@'); at != std::string::npos; at = yaml.find('@')) {
    yaml.replace(at, 1, folder.path().string());
  }
  testkit::write_file(file, yaml);
  const auto result = finish(dlock({"--config", file, "run", "x", "--", "true"}));
  EXPECT_EQ(result.status.shell_status(), 78) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("dlock: " + file + GetParam().place), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(GetParam().remedy), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

const BadConfig kBadConfigs[] = {
    {"UnknownKey", "stores:\n  a:\n    url: \"file://@/locks\"\n    conect_timeout: 5s\n",
     ":4:", "did you mean 'connect_timeout'?"},
    {"BareNumber", "stores:\n  a:\n    url: \"file://@/locks\"\n    wait: 10\n",
     ":4:", "write 10s or 10ms"},
    {"OutOfRange", "stores:\n  a:\n    url: \"zookeeper://h\"\n    session_timeout: 1h\n",
     ":4:", "is too large; write 1m or less"},
    {"UnknownStore",
     "stores:\n  main: \"file://@/locks\"\nlocks:\n  - { match: \"**\", store: mian }\n",
     ":4:", "did you mean 'main'?"},
    {"UnknownScheme", "stores:\n  a: \"zookeper://h\"\n", ":2:", "did you mean zookeeper://?"},
    {"RefusedScheme", "stores:\n  a: \"zk+tls://h\"\n", ":2:", "through a tunnel"},
    {"KeyInBoth", "stores:\n  a: { url: \"file://@/locks?wait=1s\", wait: 2s }\n",
     ":2:", "keep one"},
    {"PasswordInTheFile",
     "stores:\n  a:\n    url: \"zookeeper://h\"\n    auth: { username: u, password: secret }\n",
     ":4:", "write password_env: VARIABLE"},
    {"NoVariable",
     "stores:\n  a:\n    url: \"zookeeper://h\"\n    auth: { username: u, password_env: "
     "DLOCK_TEST_NOT_SET }\n",
     ":4:", "the environment variable DLOCK_TEST_NOT_SET is not set"},
    {"LeaseOnASessionStore", "stores:\n  a: { url: \"zookeeper://h\", lease: 9s }\n",
     ":2:", "write session_timeout: 9s instead"},
    {"NotYaml", "stores:\n  a: [\n", ":", "not YAML"},
    {"UnknownRequirement", "stores:\n  a: { url: \"file://@/locks\", require: fair-play }\n",
     ":2:", "known: exclusive, fair, token, shared, semaphore"},
    {"UnknownRetry", "stores:\n  a: { url: \"file://@/locks\", retry: foreverr }\n",
     ":2:", "did you mean 'forever'?"},
};

INSTANTIATE_TEST_SUITE_P(All, CliConfig, testing::ValuesIn(kBadConfigs),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(CliConfigSource, AUrlIsNamedByWhereItStands) {
  EXPECT_NE(finish(dlock({"--store", "nonsense", "status", "x"})).err.find("dlock: --store: "),
            std::string::npos);
  auto options = dlock({"status", "x"});
  options.env = {{"DLOCK_STORE", "file:///tmp/x?wait=10"}};
  options.unset_env = {"DLOCK_CONFIG"};
  const auto result = finish(options);
  EXPECT_EQ(result.status.shell_status(), 78);
  EXPECT_NE(result.err.find("dlock: DLOCK_STORE: "), std::string::npos) << result.err;
}

TEST(CliConfigSource, NoneIsSaidToBeMissing) {
  const auto result = finish(dlock({"status", "x"}));
  EXPECT_EQ(result.status.shell_status(), 78);
  EXPECT_NE(result.err.find("set DLOCK_STORE to a URL"), std::string::npos) << result.err;
}

TEST(CliConfigSource, APasswordIsNeverShown) {
  for (const char* url : {"zookeeper://app:hunter2@h:port", "zookeeper://app:hunter2@h?zzz=1",
                          "nowhere://app:hunter2@h"}) {
    const auto result = finish(dlock({"--store", url, "status", "x"}));
    EXPECT_EQ(result.status.shell_status(), 78) << result.err;
    EXPECT_EQ(result.err.find("hunter2"), std::string::npos) << result.err;
  }
}

TEST(CliConfigSource, AStoreOfOneProcessGuardsNoCommand) {
  const std::vector<std::vector<std::string>> commands{
      {"run", "x", "--", "true"}, {"hold", "x"}, {"status", "x"}, {"break", "x", "--token", "1"}};
  for (auto command : commands) {
    command.insert(command.begin(), {"--store", "memory://x"});
    const auto result = finish(dlock(command));
    EXPECT_EQ(result.status.shell_status(), 78) << result.err;
    EXPECT_EQ(result.err.find("dlock: --store: a store of the kind `memory`"), 0U) << result.err;
    EXPECT_NE(result.err.find("file:///"), std::string::npos) << "what to write instead";
  }
}

TEST(CliConfigSource, ANameWithoutARouteIsRefused) {
  const testkit::TempDir folder("dlock-cli-test");
  const auto file = (folder / "dlock.yaml").string();
  testkit::write_file(file, "stores:\n  a: \"file://" + folder.path().string() +
                                "/locks\"\nlocks:\n  - { match: \"billing/**\", store: a }\n");
  const auto result = finish(dlock({"--config", file, "run", "x", "--", "true"}));
  EXPECT_EQ(result.status.shell_status(), 78);
  EXPECT_NE(result.err.find("add { match: \"**\""), std::string::npos) << result.err;
  EXPECT_EQ(finish(dlock({"--config", file, "run", "billing/1", "--", "true"})).status.code, 0);
}

TEST(CliConfigSource, TheStartersBlockWarnsAndNamesTheValueUsed) {
  const testkit::TempDir folder("dlock-cli-test");
  const auto file = (folder / "application.yml").string();
  testkit::write_file(file,
                      "zk-lock:\n  address: 127.0.0.1:1\n  connection-timeout: 100\n"
                      "  session-timeout: 600000\n  retry-policy: RetryOneTime\n");
  const auto result = finish(dlock({"--config", file, "run", "x", "--", "true"}));
  EXPECT_EQ(result.status.shell_status(), 69) << result.err;
  EXPECT_NE(result.err.find("dlock: warning: " + file +
                            ":4:3: zk-lock: session-timeout: 600000 ms is too long; used: 40000"),
            std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace dlock::cli_test
