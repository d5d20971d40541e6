// SPDX-License-Identifier: Apache-2.0
//
// What the system refuses: each a clear failure, never a grant.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "backends/local/error.hpp"
#include "backends/local/rules/names.hpp"
#include "backends/local/wire/directory.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/unit/local/support.hpp"

namespace dlock::local {
namespace {

using test::Store;
using testkit::TempDir;
using namespace std::chrono_literals;

TEST(LocalRefusals, APathThatIsAFile) {
  const TempDir dir;
  testkit::write_file(dir / "file", "x");
  Store store((dir / "file").string());
  const auto failure = store.connect();
  EXPECT_EQ(failure.error, dlock::errc::config_invalid) << failure.text;
  EXPECT_NE(failure.text.find("file"), std::string::npos);
  Store below((dir / "file" / "locks").string());
  EXPECT_EQ(below.connect().error, dlock::errc::config_invalid);
}

TEST(LocalRefusals, AnEmptyPathIsAConfigurationError) {
  try {
    const Store store("");
    ADD_FAILURE() << "accepted";
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), dlock::errc::config_invalid);
    EXPECT_NE(error.server_text().find("file:///"), std::string::npos);
  }
}

TEST(LocalRefusals, ADirectoryThatTheSystemDoesNotCreateIsRefusedWithTheSystemsReason) {
  Store store("/proc/dlock-test");
  const auto failure = store.connect();
  EXPECT_EQ(failure.error, dlock::errc::config_invalid) << failure.text;
  EXPECT_EQ(failure.text, "cannot create /proc/dlock-test: No such file or directory");
}

TEST(LocalRefusals, AMissingParentIsNamedAndNotCreated) {
  const TempDir dir;
  Store store((dir / "a" / "b" / "locks").string());
  const auto failure = store.connect();
  EXPECT_EQ(failure.error, dlock::errc::config_invalid) << failure.text;
  EXPECT_NE(failure.text.find((dir / "a").string() + " does not exist"), std::string::npos)
      << failure.text;
  EXPECT_FALSE(std::filesystem::exists(dir / "a"));
  std::filesystem::create_symlink(dir / "nowhere" / "locks", dir / "link");
  Store linked((dir / "link").string());
  EXPECT_EQ(linked.connect().error, dlock::errc::config_invalid);
}

TEST(LocalRefusals, AParentThatIsMissingForAWhileIsWaitedForByAStoreThatUsedIt) {
  const TempDir dir;
  const auto app = dir / "app";
  std::filesystem::create_directory(app);
  Store store((app / "locks").string());
  ASSERT_FALSE(store.connect().error);
  std::filesystem::remove_all(app);
  store.run_until([&] { return !store.sink.warnings.empty(); });
  const auto refused = store.ask(store.make("a"));
  EXPECT_EQ(refused.status, ClaimStatus::unavailable) << refused.failure.text;
  EXPECT_NE(refused.failure.text.find(app.string() + " does not exist"), std::string::npos)
      << refused.failure.text;
  std::filesystem::create_directory(app);
  EXPECT_EQ(store.ask(store.make("a")).status, ClaimStatus::granted);
}

TEST(LocalRefusals, AModeThatIsNoneOfFilesOrKeepsTheOwnerOut) {
  const TempDir dir;
  for (const std::string mode : {"rw", "0778", "0770", "02660", "0060", "-0660", "0660 "}) {
    try {
      const Store store((dir / "locks").string(), mode);
      ADD_FAILURE() << mode;
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), dlock::errc::config_invalid) << mode;
      EXPECT_NE(error.server_text().find("0660"), std::string::npos) << error.server_text();
    }
  }
}

TEST(LocalRefusals, AFileSystemNobodyKnows) {
  const auto result = open_directory("/proc", false, 0);
  EXPECT_EQ(result.failure.error, dlock::errc::config_unsafe) << result.failure.text;
  EXPECT_NE(result.failure.text.find("trust_filesystem"), std::string::npos);
  EXPECT_TRUE(open_directory("/proc", true, 0).failure.error)
      << "the self-test is made all the same";
}

TEST(LocalRefusals, PermissionDenied) {
  const TempDir dir;
  Store store((dir / "locks").string());
  ASSERT_FALSE(store.connect().error);
  const auto claim = store.make("a");
  ASSERT_EQ(store.ask(claim).status, ClaimStatus::granted);
  store.release(claim);
  const auto file = dir.path() / "locks" / file_name("a");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  if (::geteuid() == 0) {
    // Root may do anything: an ordinary user of this machine stands in.
    std::filesystem::permissions(dir.path(), std::filesystem::perms::all);
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto answer = store.ask(store.make("a"));
  const auto restored = ::seteuid(::getuid());
  EXPECT_EQ(restored, 0);
  EXPECT_EQ(answer.status, ClaimStatus::failed);
  EXPECT_EQ(answer.failure.error, dlock::errc::access_denied) << answer.failure.text;
  EXPECT_NE(answer.failure.text.find(file.string()), std::string::npos);
}

TEST(LocalRefusals, ADirectoryOrLinkInTheFilesPlace) {
  const TempDir dir;
  const auto locks = dir / "locks";
  Store store(locks.string());
  ASSERT_FALSE(store.connect().error);
  std::filesystem::create_directory(locks / file_name("a"));
  testkit::write_file(dir / "target", "x");
  std::filesystem::create_symlink(dir / "target", locks / file_name("b"));
  ASSERT_EQ(::mkfifo((locks / file_name("c")).c_str(), 0600), 0);
  for (const std::string name : {"a", "b", "c"}) {
    const auto answer = store.ask(store.make(name));
    EXPECT_EQ(answer.status, ClaimStatus::failed) << name;
    EXPECT_EQ(answer.failure.error, dlock::errc::protocol) << name << answer.failure.text;
  }
}

TEST(LocalRefusals, TheFileOfAnotherLock) {
  const TempDir dir;
  const auto locks = dir / "locks";
  Store store(locks.string());
  ASSERT_FALSE(store.connect().error);
  const auto claim = store.make("a");
  ASSERT_EQ(store.ask(claim).status, ClaimStatus::granted);
  store.release(claim);
  std::filesystem::copy_file(locks / file_name("a"), locks / file_name("b"));
  const auto answer = store.ask(store.make("b"));
  EXPECT_EQ(answer.status, ClaimStatus::failed);
  EXPECT_NE(answer.failure.text.find("'a'"), std::string::npos) << answer.failure.text;
}

/// The limits of this process, put back at the end.
class Limits {
 public:
  explicit Limits(__rlimit_resource which) : which_(which) { ::getrlimit(which_, &saved_); }
  ~Limits() { ::setrlimit(which_, &saved_); }
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;
  void set(rlim_t soft, rlim_t hard) const {
    const rlimit limit{soft, hard};
    ASSERT_EQ(::setrlimit(which_, &limit), 0);
  }
  const rlimit& saved() const { return saved_; }

 private:
  __rlimit_resource which_;
  rlimit saved_{};
};

TEST(LocalRefusals, TheSoftDescriptorLimitIsRaised) {
  const TempDir dir;
  Store store((dir / "locks").string());
  ASSERT_FALSE(store.connect().error);
  const Limits limits(RLIMIT_NOFILE);
  limits.set(40, limits.saved().rlim_max);
  std::vector<ClaimPtr> claims;
  for (int i = 0; i < 100; ++i) {
    claims.push_back(store.make("n" + std::to_string(i % 2)));
    const auto status = store.ask(claims.back()).status;
    ASSERT_TRUE(status == ClaimStatus::granted || status == ClaimStatus::waiting) << i;
  }
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, limits.saved().rlim_max);
  for (const auto& claim : claims) store.release(claim);
}

TEST(LocalRefusals, TheHardDescriptorLimitIsAClearFailure) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TempDir dir;
  const auto path = (dir / "locks").string();
  // The hard limit can only come down, so a process of its own gets it.
  const auto in_child = [&]() -> int {
    Store store(path);
    if (store.connect().error) return 1;
    // UndefinedBehaviorSanitizer opens a pipe when it meets an object for the first time.
    if (system_failure(EMFILE, "").error != dlock::errc::unavailable) return 6;
    const rlimit limit{40, 40};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    std::vector<ClaimPtr> claims;
    for (int i = 0; i < 100; ++i) {
      claims.push_back(store.make("a"));
      const auto answer = store.ask(claims.back());
      if (answer.status == ClaimStatus::waiting || answer.status == ClaimStatus::granted) continue;
      if (answer.status != ClaimStatus::failed) return 2;
      if (answer.failure.error != dlock::errc::unavailable) return 3;
      if (answer.failure.text.find("RLIMIT_NOFILE, hard limit 40") == std::string::npos) return 4;
      store.release(claims.front());
      return 0;
    }
    return 5;
  };
  EXPECT_EXIT(::_exit(in_child()), ::testing::ExitedWithCode(0), "");
}

TEST(LocalRefusals, FilesOfFreeLocksMakeRoomForOthers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TempDir dir;
  const auto path = (dir / "locks").string();
  const auto in_child = [&]() -> int {
    Store store(path);
    if (store.connect().error) return 1;
    const rlimit limit{40, 40};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    // The second time the files are there.
    for (int i = 0; i < 200; ++i) {
      const auto claim = store.make("n" + std::to_string(i % 100));
      if (store.ask(claim).status != ClaimStatus::granted) return 2;
      if (store.release(claim) != ReleaseStatus::released) return 3;
    }
    return 0;
  };
  EXPECT_EXIT(::_exit(in_child()), ::testing::ExitedWithCode(0), "");
}

TEST(LocalRefusals, AFullDiskIsAClearFailure) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TempDir dir;
  const auto path = (dir / "locks").string();
  // A limit on the size of files stands in for a disk without room.
  const auto in_child = [&]() -> int {
    ::signal(SIGXFSZ, SIG_IGN);
    Store store(path);
    if (store.connect().error) return 1;
    const auto old = store.make("old");
    if (store.ask(old).status != ClaimStatus::granted) return 2;
    store.release(old);
    const rlimit limit{32, 32};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    for (const std::string name : {"new", "old"}) {
      const auto answer = store.ask(store.make(name));
      if (answer.status != ClaimStatus::failed) return 3;
      if (answer.failure.error != make_error_code(Error::no_space)) return 4;
    }
    if (std::filesystem::exists(path + "/" + file_name("new"))) return 5;
    return 0;
  };
  EXPECT_EXIT(::_exit(in_child()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dlock::local
