// SPDX-License-Identifier: Apache-2.0
#include "dlock/fenced_register.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/fencing/fenced_file.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock {
namespace {

using testkit::TempDir;

class FencedRegisterTest : public testing::Test {
 protected:
  FencedRegister open() const { return FencedRegister(path()); }
  std::string path() const { return (folder_ / "state").string(); }
  std::string raw() const {
    std::ostringstream all;
    all << std::ifstream(path(), std::ios::binary).rdbuf();
    return all.str();
  }
  void set_raw(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
  }
  static Sequencer grant(std::uint64_t token, std::string name = "orders/42") {
    return {std::move(name), Mode::exclusive, token, "zk"};
  }

  TempDir folder_{"dlock-register"};
};

/// Runs `work` in a child process; its wait status.
int in_child(const std::function<void()>& work) {
  const auto child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(FencedRegisterTest, TakesNoReadersGrant) {
  auto file = open();
  file.write(grant(5), "five");
  error_code ec;
  file.write(Sequencer("orders/42", Mode::shared, 7, "zk"), "seven", ec);
  EXPECT_EQ(ec, errc::invalid_argument) << "others hold the lock together with it";
  EXPECT_EQ(open().read()->bytes, "five");
}

TEST_F(FencedRegisterTest, RefusesLowerTokensAndTakesTheSameAgain) {
  auto file = open();
  EXPECT_FALSE(file.read());
  file.write(grant(5), "five");
  file.write(grant(5), "five again");
  error_code ec;
  file.write(grant(4), "late", ec);
  EXPECT_EQ(ec, errc::stale_token);
  file.write(4, "late", ec);
  EXPECT_EQ(ec, errc::stale_token);
  const auto content = open().read();
  ASSERT_TRUE(content);
  EXPECT_EQ(content->bytes, "five again");
  EXPECT_EQ(content->token, 5U);
  EXPECT_EQ(content->name, "orders/42");
  file.write(9, "nine", ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_EQ(open().read()->token, 9U);
  EXPECT_EQ(open().read()->name, "orders/42") << "kept";
  try {
    file.write(grant(8), "late");
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code(), errc::stale_token);
    EXPECT_NE(error.server_text().find("token 8 is below 9"), std::string::npos);
  }
}

TEST_F(FencedRegisterTest, BelongsToOneLock) {
  auto file = open();
  file.write(grant(5, "a b/\xC3\xA9"), "x");
  EXPECT_EQ(file.read()->name, "a b/\xC3\xA9");
  error_code ec;
  file.write(grant(500, "other"), "y", ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  file.write(kTokenEnd, "y", ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_EQ(file.read()->bytes, "x");
}

TEST_F(FencedRegisterTest, KeepsAnyBytesAndTheFilesRights) {
  auto file = open();
  std::string bytes(300'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  file.write(1, bytes);
  EXPECT_EQ(file.read()->bytes, bytes);
  ASSERT_EQ(::chmod(path().c_str(), 0640), 0);
  file.write(2, "");
  EXPECT_EQ(file.read()->bytes, "");
  struct stat now = {};
  ASSERT_EQ(::stat(path().c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777U, 0640U);
}

// The file itself, the folder above it, and both at once: all the same file.
TEST_F(FencedRegisterTest, ThroughASymlinkItIsTheSameFile) {
  namespace fs = std::filesystem;
  const fs::path folder = folder_.path();
  fs::create_directory(folder / "real");
  fs::create_directory_symlink("real", folder / "link");
  fs::create_symlink("link/state", folder / "state");
  FencedRegister by_link((folder / "state").string());
  by_link.write(grant(5), "five");
  EXPECT_TRUE(fs::is_symlink(folder / "state")) << "not replaced by a file";
  EXPECT_TRUE(fs::is_regular_file(folder / "real" / "state"));
  error_code ec;
  for (const char* path : {"real/state", "link/state", "state"}) {
    FencedRegister other((folder / path).string());
    EXPECT_EQ(other.read()->token, 5U) << path;
    other.write(grant(4), "late", ec);
    EXPECT_EQ(ec, errc::stale_token) << path;
  }
  by_link.write(grant(6), "six");
  EXPECT_EQ(FencedRegister((folder / "real/state").string()).read()->token, 6U);
}

TEST_F(FencedRegisterTest, AChdirOrASwitchedSymlinkLaterChangesNothing) {
  namespace fs = std::filesystem;
  const fs::path folder = folder_.path();
  for (const char* name : {"one", "two"}) fs::create_directory(folder / name);
  fs::create_directory_symlink("one", folder / "current");
  const auto before = fs::current_path();
  fs::current_path(folder / "one");
  FencedRegister relative("state");
  FencedRegister linked((folder / "current" / "state").string());
  relative.write(grant(5), "five");
  fs::current_path(folder / "two");
  fs::remove(folder / "current");
  fs::create_directory_symlink("two", folder / "current");
  error_code ec;
  for (auto* file : {&relative, &linked}) {
    EXPECT_EQ(file->read()->token, 5U);
    file->write(grant(4), "late", ec);
    EXPECT_EQ(ec, errc::stale_token);
    file->write(grant(5), "again", ec);
    EXPECT_FALSE(ec) << ec.message();
  }
  fs::current_path(before);
  EXPECT_FALSE(fs::exists(folder / "two" / "state"));
}

TEST_F(FencedRegisterTest, AFolderThatWasMovedAcceptsNothing) {
  namespace fs = std::filesystem;
  const fs::path folder = folder_.path();
  fs::create_directories(folder / "above" / "app");
  FencedRegister file((folder / "above/app/state").string());
  file.write(grant(5), "five");
  fs::rename(folder / "above", folder / "before");
  error_code ec;
  file.write(grant(6), "six", ec);
  EXPECT_EQ(ec.value(), ESTALE) << ec.message();
  fs::create_directories(folder / "above" / "app");
  file.write(grant(6), "six", ec);
  EXPECT_EQ(ec.value(), ESTALE) << ec.message();
  EXPECT_THROW(file.read(), LockError);
}

TEST_F(FencedRegisterTest, OtherNamesOfTheFileAreRefused) {
  namespace fs = std::filesystem;
  auto file = open();
  file.write(grant(5), "five");
  fs::create_hard_link(path(), folder_ / "other");
  error_code ec;
  file.write(grant(6), "six", ec);
  EXPECT_EQ(ec, errc::invalid_argument) << "the other name would keep token 5";
  EXPECT_EQ(file.read()->token, 5U);
  fs::remove(folder_ / "other");
  file.write(grant(6), "six");
  fs::rename(path(), folder_ / "elsewhere");
  fs::create_symlink("elsewhere", path());
  file.write(grant(7), "seven", ec);
  EXPECT_EQ(ec.value(), ELOOP) << "put there after it was looked up";
}

// Root may give files away; another user may not, and then writes nothing.
TEST_F(FencedRegisterTest, KeepsTheFilesOwnerOrSaysThatItCannot) {
  if (::geteuid() != 0) {
    // Nothing can be given away here, so nothing is: our own files are all there is.
    auto file = open();
    file.write(grant(5), "five");
    file.write(grant(6), "six");
    struct stat now = {};
    ASSERT_EQ(::stat(path().c_str(), &now), 0);
    EXPECT_EQ(now.st_uid, ::geteuid());
    return;
  }
  auto file = open();
  file.write(grant(5), "five");
  ASSERT_EQ(::chown(path().c_str(), 4711, 4712), 0);
  ASSERT_EQ(::chmod(path().c_str(), 0660), 0);
  file.write(grant(6), "six");
  struct stat now = {};
  ASSERT_EQ(::stat(path().c_str(), &now), 0);
  EXPECT_EQ(now.st_uid, 4711U);
  EXPECT_EQ(now.st_gid, 4712U);
  EXPECT_EQ(now.st_mode & 07777U, 0660U);
  // Another user, who may write in the folder and read the file, but not give it back.
  ASSERT_EQ(::chmod(path().c_str(), 0666), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  ASSERT_EQ(::chmod((path() + ".lock").c_str(), 0666), 0);
  const auto text = raw();
  const int status = in_child([&] {
    if (::setgid(4713) != 0 || ::setuid(4713) != 0) ::_exit(1);
    FencedRegister other(path());
    error_code ec;
    other.write(grant(7), "seven", ec);
    ::_exit(ec.value() == EPERM ? 0 : 2);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(raw(), text) << "touched";
  EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
}

TEST_F(FencedRegisterTest, ADamagedFileAcceptsNothing) {
  auto file = open();
  file.write(grant(5), "content");
  const auto good = raw();
  std::set<std::string> damaged{"", "hello\n", good + "x", "x" + good};
  for (std::size_t i = 0; i < good.size(); ++i) {
    damaged.insert(good.substr(0, i));
    auto flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    damaged.insert(flipped);
  }
  for (const auto& bytes : damaged) {
    set_raw(bytes);
    error_code ec;
    file.write(grant(1000), "new", ec);
    ASSERT_EQ(ec, errc::corrupt_file) << bytes;
    ASSERT_EQ(raw(), bytes) << "touched";
    ASSERT_THROW(file.read(), LockError) << bytes;
  }
  set_raw(good);
  EXPECT_EQ(file.read()->bytes, "content");
}

TEST_F(FencedRegisterTest, SaysWhyTheSystemRefuses) {
  FencedRegister nowhere((folder_ / "absent" / "state").string());
  try {
    nowhere.write(1, "x");
    FAIL();
  } catch (const LockError& error) {
    EXPECT_EQ(error.code().value(), ENOENT);
    EXPECT_NE(error.server_text().find("absent"), std::string::npos);
  }
  ASSERT_EQ(::mkdir(path().c_str(), 0777), 0);
  EXPECT_THROW(open().read(), LockError);
}

// Dies by SIGKILL before each step of a write, also in the midst of its bytes. Whatever is left is
// whole, the token never goes back, and the next writer is not in the way of the dead one's things.
TEST_F(FencedRegisterTest, SurvivesAKillBeforeEachStep) {
  const std::string before_bytes(200'000, 'o');
  const std::string after_bytes(200'000, 'n');
  std::set<std::string> killed_at;
  int left_old = 0;
  int left_new = 0;
  for (int last_step = 1;; ++last_step) {
    const auto at = (folder_ / ("state" + std::to_string(last_step))).string();
    FencedRegister file(at);
    file.write(1, before_bytes);
    const auto notes = at + ".step";
    const int status = in_child([&] {
      int step = 0;
      core::FencedContent content{after_bytes, 2, {}};
      core::FencedPlace place(at);
      core::write_fenced(place, content, [&](std::string_view name) {
        if (++step < last_step) return;
        std::ofstream(notes) << name;
        ::kill(::getpid(), SIGKILL);
      });
    });
    const auto content = file.read();
    ASSERT_TRUE(content);
    if (content->token == 1) {
      ++left_old;
      ASSERT_EQ(content->bytes, before_bytes);
    } else {
      ++left_new;
      ASSERT_EQ(content->token, 2U);
      ASSERT_EQ(content->bytes, after_bytes);
      error_code ec;
      file.write(1, "late", ec);
      ASSERT_EQ(ec, errc::stale_token);
    }
    file.write(2, "again");
    ASSERT_EQ(file.read()->bytes, "again");
    ASSERT_EQ(file.read()->token, 2U);
    if (WIFEXITED(status)) break;
    std::string step;
    std::getline(std::ifstream(notes), step);
    killed_at.insert(step);
  }
  EXPECT_EQ(killed_at, (std::set<std::string>{"lock", "read", "create", "write", "fsync", "rename",
                                              "fsync folder", "unlock"}));
  EXPECT_EQ(left_old, 9) << "lock, read, create, four chunks, fsync, rename";
  EXPECT_EQ(left_new, 3) << "fsync folder, unlock, and done";
}

TEST_F(FencedRegisterTest, WritersOfSeveralProcessesNeverGoBack) {
  constexpr int kWriters = 4;
  constexpr std::uint64_t kEach = 50;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const auto child = ::fork();
    if (child == 0) {
      auto file = open();
      for (std::uint64_t i = 0; i < kEach; ++i) {
        const auto token = i * kWriters + static_cast<std::uint64_t>(writer) + 1;
        error_code ec;
        file.write(token, std::to_string(token) + std::string(10'000, 'x'), ec);
        if (ec && ec != errc::stale_token) ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  std::uint64_t seen = 0;
  std::size_t running = children.size();
  while (running > 0) {
    if (const auto content = open().read()) {
      EXPECT_GE(content->token, seen);
      seen = content->token;
      EXPECT_EQ(content->bytes, std::to_string(seen) + std::string(10'000, 'x'));
    }
    int status = 0;
    if (::waitpid(-1, &status, WNOHANG) > 0) {
      --running;
      EXPECT_EQ(status, 0);
    }
  }
  EXPECT_EQ(open().read()->token, kWriters * kEach);
}

}  // namespace
}  // namespace dlock
