// SPDX-License-Identifier: Apache-2.0
//
// `dlock compare` executes dlock-compare. A script plays that program here.
#include <sys/stat.h>

#include <filesystem>

#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

namespace fs = std::filesystem;

/// A copy of dlock in its own folder, and an empty folder in PATH.
class CliCompare : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& folder : {own(), in_path()}) fs::create_directory(folder);
    fs::copy_file(dlock_binary(), own() / "dlock");
  }

  fs::path own() const { return folder_ / "own"; }
  fs::path in_path() const { return folder_ / "path"; }

  static void install(const fs::path& folder, const std::string& lines, mode_t mode = 0755) {
    const auto file = folder / "dlock-compare";
    testkit::write_file(file, "#!/bin/sh\n" + lines);
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
  }

  testkit::ProcessOptions dlock(const std::vector<std::string>& words) const {
    auto options = cli_test::dlock(words);
    options.argv.front() = own() / "dlock";
    options.env = {{"PATH", in_path().string() + ":/usr/bin:/bin"}};
    return options;
  }

 private:
  testkit::TempDir folder_{"dlock-cli-test"};
};

TEST_F(CliCompare, PassesAllWordsOnAndKeepsItsProcess) {
  install(own(), "echo $$; printf '<%s>' \"$@\"; exit 7\n");
  const auto words_of = [&](const std::vector<std::string>& words) {
    testkit::Process process(dlock(words));
    const auto pid = process.pid();
    EXPECT_EQ(process.read_line(patience()), std::to_string(pid));
    const auto status = process.wait(patience());
    EXPECT_TRUE(status && status->shell_status() == 7);
    return process.unread_stdout();
  };
  EXPECT_EQ(words_of({"compare"}), "<>");
  EXPECT_EQ(words_of({"compare", "--quick", "a b", "", "--bogus=1"}),
            "<--quick><a b><><--bogus=1>");
  EXPECT_EQ(words_of({"--store", "redis://:pw@h", "-q", "compare", "--list"}),
            "<--store><redis://:pw@h><-q><--list>");
  EXPECT_EQ(words_of({"compare", "--", "x", "--", "y"}), "<--><x><--><y>");
  EXPECT_EQ(words_of({"compare", "--help"}), "<--help>");
  EXPECT_EQ(words_of({"help", "compare", "report"}), "<report><--help>");
  EXPECT_EQ(words_of({"compare", "compare", "help"}), "<compare><help>");
}

TEST_F(CliCompare, PrefersTheProgramInTheFolderOfDlock) {
  install(in_path(), "echo path\n");
  EXPECT_EQ(finish(dlock({"compare"})).out, "path\n");
  install(own(), "echo own\n");
  EXPECT_EQ(finish(dlock({"compare"})).out, "own\n");
  auto link = dlock({"compare"});
  fs::create_symlink(own() / "dlock", in_path() / "linked");
  link.argv.front() = in_path() / "linked";
  EXPECT_EQ(finish(link).out, "own\n");
}

TEST_F(CliCompare, ReportsAMissingProgramWithTheRemedy) {
  const auto missing = "dlock-compare is not installed: it is neither in " + own().string() +
                       " nor in PATH; build dlock with -DDLOCK_COMPARE=ON and install it\n";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"compare"}, {"compare", "--help"}, {"help", "compare"}, {"-q", "compare", "--list"}}) {
    const auto result = finish(dlock(words));
    EXPECT_EQ(result.status.shell_status(), 127);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "dlock: " + missing);
  }
  const auto help = finish(dlock({"help"})).out;
  EXPECT_NE(help.find("\n  compare  "), std::string::npos) << help;
  EXPECT_TRUE(help.ends_with("\nVerb compare: " + missing)) << help;
  install(in_path(), "");
  EXPECT_EQ(finish(dlock({"help"})).out.find("not installed:"), std::string::npos);
}

TEST_F(CliCompare, ReportsAProgramThatCannotBeExecuted) {
  install(own(), "", 0644);
  const auto result = finish(dlock({"compare"}));
  EXPECT_EQ(result.status.shell_status(), 126);
  EXPECT_EQ(result.err, "dlock: cannot execute " + (own() / "dlock-compare").string() +
                            ": Permission denied\n");
}

}  // namespace
}  // namespace dlock::cli_test
