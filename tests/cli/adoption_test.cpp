// SPDX-License-Identifier: Apache-2.0
//
// `dlock hold --export` takes a lock, `dlock run --adopt` works under it.
#include <csignal>

#include "testkit/servers/redis.hpp"
#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

using testkit::Process;

class CliAdoption : public ::testing::Test {
 protected:
  void SetUp() override { server_.start(); }
  std::string url() const { return server_.url() + "?lease=2s"; }
  std::string file(const std::string& text) const {
    const auto path = folder_ / "grant";
    testkit::write_file(path, text + "\n");
    return path.string();
  }
  testkit::Finished adopt(const std::string& file, const std::string& name = "x",
                          const std::string& input = {}) const {
    return finish(dlock_on(url(), {"run", name, "--adopt", file, "--", "sh", "-c",
                                   "cat; echo $DLOCK_NAME $DLOCK_TOKEN"}),
                  input);
  }

  testkit::RedisServer server_;
  const testkit::TempDir folder_;
};

TEST_F(CliAdoption, ACommandRunsUnderTheGrantOfAnother) {
  Process exporter(dlock_on(url(), {"hold", "x", "--export"}));
  const auto text = exporter.read_line(patience());
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("dlock-grant1:")) << *text;
  EXPECT_TRUE(is_held(url(), "x"));
  EXPECT_EQ(finish(dlock_on(url(), {"hold", "x", "--wait", "0"})).status.shell_status(), 75);
  const auto ran = adopt(file(*text));
  EXPECT_EQ(ran.status.shell_status(), 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("x ")) << ran.out;
  EXPECT_EQ(exporter.wait(patience())->shell_status(), 0) << exporter.collected_stderr();
  EXPECT_FALSE(is_held(url(), "x"));
  const auto again = adopt(file(*text));
  EXPECT_EQ(again.status.shell_status(), 75);
  EXPECT_EQ(again.out, "");
}

TEST_F(CliAdoption, OfStandardInputTheFirstLineAndNoMore) {
  Process exporter(dlock_on(url(), {"hold", "x", "--export", "--within", "60s"}));
  const auto text = exporter.read_line(patience());
  ASSERT_TRUE(text);
  const auto ran = adopt("-", "x", *text + "\nof the command\n");
  EXPECT_EQ(ran.status.shell_status(), 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("of the command\nx ")) << ran.out;
}

TEST_F(CliAdoption, WhatNobodyAdoptsIsGivenBack) {
  const auto ended = finish(dlock_on(url(), {"hold", "x", "--export", "--within", "300ms"}));
  EXPECT_EQ(ended.status.shell_status(), 75);
  EXPECT_NE(ended.err.find("nobody adopted it"), std::string::npos) << ended.err;
  EXPECT_FALSE(is_held(url(), "x"));
  Process exporter(dlock_on(url(), {"hold", "x", "--export"}));
  ASSERT_TRUE(exporter.read_line(patience()));
  exporter.signal(SIGTERM);
  EXPECT_EQ(exporter.wait(patience())->shell_status(), 75);
  EXPECT_FALSE(is_held(url(), "x"));
}

TEST_F(CliAdoption, AFileThatIsNotWrittenYetIsToldApart) {
  const auto early = adopt(file(""));
  EXPECT_EQ(early.status.shell_status(), 64);
  EXPECT_NE(early.err.find("is empty"), std::string::npos) << early.err;
  EXPECT_NE(early.err.find("hold x --export"), std::string::npos) << early.err;
}

TEST_F(CliAdoption, TheSecretIsShownNowhere) {
  Process exporter(dlock_on(url(), {"hold", "x", "--export"}));
  const auto text = exporter.read_line(patience());
  ASSERT_TRUE(text);
  const auto fields = text->substr(0, text->rfind(':'));
  const auto secret = fields.substr(fields.rfind(':') + 1);
  ASSERT_EQ(secret.size(), 32U);
  for (const char* verb : {"status x --json", "status x", "list --json", "doctor --json"}) {
    const auto shown = finish(
        {.argv = {"sh", "-c",
                  std::string("exec ") + dlock_binary() + " --store " + url() + " " + verb}});
    EXPECT_EQ(shown.out.find(secret), std::string::npos) << verb;
  }
  const auto wrong_name = adopt(file(*text), "y");
  EXPECT_EQ(wrong_name.status.shell_status(), 64) << wrong_name.err;
  EXPECT_NE(wrong_name.err.find("it is a grant of x"), std::string::npos) << wrong_name.err;
  const auto damaged = adopt(file(*text + "0"));
  EXPECT_EQ(damaged.status.shell_status(), 64);
  for (const auto& err : {wrong_name.err, damaged.err}) {
    EXPECT_EQ(err.find(secret), std::string::npos) << err;
  }
}

TEST(CliAdoptionRefused, WhereAStoreCannotAndWhereItHasNoMeaning) {
  const LocalStore store;
  const auto refused = finish(dlock_on(store.url(), {"hold", "x", "--export"}));
  EXPECT_EQ(refused.status.shell_status(), 64);
  EXPECT_NE(refused.err.find("gives no grant to another process"), std::string::npos)
      << refused.err;
  EXPECT_FALSE(is_held(store.url(), "x"));
  const std::vector<std::vector<std::string>> wrong = {
      {"hold", "x", "--export", "--shared"},
      {"hold", "x", "--export", "--for", "1s"},
      {"hold", "x", "--within", "1s"},
      {"hold", "x", "--adopt", "-", "--permits", "2"},
      {"hold", "x", "--adopt", "/nowhere/at/all"},
  };
  for (const auto& words : wrong) {
    EXPECT_EQ(finish(dlock_on(store.url(), words)).status.shell_status(), 64) << words.back();
  }
}

}  // namespace
}  // namespace dlock::cli_test
