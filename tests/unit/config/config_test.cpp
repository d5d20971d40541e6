// SPDX-License-Identifier: Apache-2.0
//
// Where a configuration comes from: a URL, a file, the environment.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "dlock/config.hpp"
#include "dlock/error.hpp"

namespace dlock::core {
namespace {

std::string complaint(const std::function<void()>& read) {
  try {
    read();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::config_invalid);
    return error.server_text();
  }
  return "(none)";
}

TEST(Config, AUrlIsOneStoreForEveryName) {
  const auto config = Config::from_url("zookeeper://zk1,zk2/app?session_timeout=10s");
  ASSERT_EQ(config.stores.size(), 1U);
  EXPECT_EQ(config.stores[0].name, "default");
  EXPECT_EQ(config.stores[0].url, "zookeeper://zk1,zk2/app?session_timeout=10s");
  EXPECT_EQ(config.stores[0].origin.text(), "URL");
  ASSERT_EQ(config.locks.size(), 1U);
  EXPECT_EQ(config.locks[0].match, "**");
  EXPECT_EQ(config.locks[0].store, "default");
}

TEST(Config, ABadUrlIsRefusedAtOnceWithoutItsPassword) {
  const auto text = complaint([] { Config::from_url("redis://app:hunter2@h:port"); });
  EXPECT_NE(text.find("URL: 'redis://app:***@h:port': 'h:port' is not a host"), std::string::npos)
      << text;
}

TEST(Config, AUrlIsComplainedOfWhereItWasWritten) {
  EXPECT_NE(complaint([] {
              Config::from_url("h:1", {"--store", 0, 0});
            }).find("--store: 'h:1': "),
            std::string::npos);
}

TEST(Config, ALockTakesTheFirstRouteThatMatches) {
  const auto config = Config::from_yaml(R"(
stores: { a: "memory://a", b: "memory://b" }
locks:
  - { match: "jobs/*", store: a }
  - { match: "jobs/**", store: b }
)",
                                        "dlock.yaml");
  ASSERT_NE(config.route("jobs/1"), nullptr);
  EXPECT_EQ(config.route("jobs/1")->store, "a");
  ASSERT_NE(config.route("jobs/1/part"), nullptr);
  EXPECT_EQ(config.route("jobs/1/part")->store, "b");
  EXPECT_EQ(config.route("other"), nullptr);
}

TEST(Config, AFileThatCannotBeReadIsNamed) {
  EXPECT_EQ(complaint([] { Config::from_file("/no/such/dlock.yaml"); }),
            "/no/such/dlock.yaml: the file cannot be read: No such file or directory");
  EXPECT_NE(complaint([] { Config::from_file("/tmp"); }).find("the file cannot be read"),
            std::string::npos);
}

// NOLINTBEGIN(concurrency-mt-unsafe): one thread here
class ConfigEnvironment : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    ::unsetenv("DLOCK_CONFIG");
    ::unsetenv("DLOCK_STORE");
  }
};

TEST_F(ConfigEnvironment, NamesAUrlOrAFile) {
  ::setenv("DLOCK_STORE", "memory://x", 1);
  EXPECT_EQ(Config::from_environment().stores[0].origin.text(), "DLOCK_STORE");

  ::setenv("DLOCK_STORE", "", 1);  // empty is unset
  const auto file = std::filesystem::temp_directory_path() /
                    ("dlock-config-test-" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(file) << "stores: { a: \"memory://x\" }\n";
  ::setenv("DLOCK_CONFIG", file.c_str(), 1);
  EXPECT_EQ(Config::from_environment().stores[0].name, "a");
  std::filesystem::remove(file);
}

TEST_F(ConfigEnvironment, ComplainsAboutNeitherAndBoth) {
  EXPECT_NE(complaint([] { Config::from_environment(); }).find("set DLOCK_STORE to a URL"),
            std::string::npos);
  ::setenv("DLOCK_STORE", "memory://x", 1);
  ::setenv("DLOCK_CONFIG", "/tmp/x", 1);
  EXPECT_NE(complaint([] { Config::from_environment(); }).find("unset one of them"),
            std::string::npos);
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace
}  // namespace dlock::core
