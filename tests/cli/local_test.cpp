// SPDX-License-Identifier: Apache-2.0
//
// The command on a lock directory.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli_support.hpp"

namespace dlock::cli_test {
namespace {

namespace json = boost::json;
using testkit::Process;

// The kernel hands the lock to the first waiter, also to a stopped process.
class CliStoppedWaiter : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Local, CliStoppedWaiter, testing::Bool(),
                         [](const auto& shared) { return shared.param ? "Readers" : "Lock"; });

TEST_P(CliStoppedWaiter, InFrontIsNamedAsTheHolder) {
  const LocalStore store;
  const auto run = [&](std::vector<std::string> options) {
    std::vector<std::string> words{"run", "x"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    return dlock_on(store.url(), words);
  };
  std::vector<std::string> late{"--wait", "200ms"};
  std::vector<std::string> hold{"hold", "x"};
  if (GetParam()) {
    late.emplace_back("--shared");
    hold.emplace_back("--shared");
  }
  Process holder(dlock_on(store.url(), hold));
  EXPECT_EQ(text(read_event(holder), "event"), "held");
  Process ahead(run({}));
  const auto waits = [&] { return !status_of(store.url(), "x").at("waiting").as_array().empty(); };
  ASSERT_TRUE(testkit::eventually(patience(), waits));
  ASSERT_TRUE(ahead.pause());
  holder.close_stdin();
  EXPECT_EQ(holder.wait(patience())->shell_status(), 0) << holder.collected_stderr();
  const auto refused = finish(run(late));
  EXPECT_EQ(refused.status.shell_status(), 75) << refused.err;
  EXPECT_NE(refused.err.find("true (pid " + std::to_string(ahead.pid()) + ")"), std::string::npos)
      << refused.err;
  ASSERT_TRUE(ahead.resume());
  EXPECT_EQ(ahead.wait(patience())->shell_status(), 0) << ahead.collected_stderr();
}

TEST(CliLocalMode, LetsTheMembersOfAGroupShareADirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "changes the user: run as root";
  constexpr gid_t kGroup = 777;
  const LocalStore store;
  const auto locks = store.folder() / "locks";
  ASSERT_EQ(::chmod(store.folder().path().c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(locks.c_str(), 0700), 0);
  ASSERT_EQ(::chown(locks.c_str(), 0, kGroup), 0);
  ASSERT_EQ(::chmod(locks.c_str(), 02775), 0);
  const auto member = [&](const std::string& user, const std::string& mode) {
    auto options = dlock_on(store.url() + mode, {"run", "job", "--wait", "0", "--", "true"});
    const std::vector<std::string> as_user{
        "setpriv",  "--reuid", user, "--regid", user,
        "--groups", "777",     "sh", "-c",      "umask 022; exec \"$@\"",
        "sh"};
    options.argv.insert(options.argv.begin(), as_user.begin(), as_user.end());
    return finish(options);
  };
  for (const std::string user : {"1001", "1002"}) {
    const auto result = member(user, "?mode=0660");
    EXPECT_EQ(result.status.shell_status(), 0) << user << ": " << result.err;
  }
  for (const auto& entry : std::filesystem::directory_iterator(locks)) {
    struct stat info {};
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0660U) << entry.path();
    EXPECT_EQ(info.st_gid, kGroup) << entry.path();
  }
}

}  // namespace
}  // namespace dlock::cli_test
