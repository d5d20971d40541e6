// SPDX-License-Identifier: Apache-2.0
//
// Files of a newer dlock: each call is refused with both formats, and the file stays as it is.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "backends/local/rules/names.hpp"
#include "dlock/local.hpp"
#include "dlock/lock_manager.hpp"
#include "testkit/await.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::local {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr AcquireOptions kSoon{.wait = 20s};

class LocalNewerFormat : public testing::Test {
 protected:
  using Call = std::function<void(LockManager&)>;

  LockManager open() {
    OpenOptions options;
    options.backends = {&local::backend()};
    options.log = [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex_);
      warnings_ += text;
    };
    return LockManager::open("file://" + folder_.path().string(), std::move(options));
  }
  std::string path(const std::string& file) const { return (folder_ / file).string(); }
  /// Writes the text over the beginning of the file.
  void put(const std::string& file, const std::string& text) const {
    std::ofstream(path(file), std::ios::app).close();
    std::fstream out(path(file), std::ios::in | std::ios::out | std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  std::string contents(const std::string& file) const {
    std::ostringstream all;
    all << std::ifstream(path(file), std::ios::binary).rdbuf();
    return all.str();
  }
  void expect_refused(LockManager& locks, const std::string& file, const std::string& formats,
                      const Call& call) const {
    const auto before = contents(file);
    try {
      call(locks);
      ADD_FAILURE() << "not refused";
    } catch (const LockError& error) {
      EXPECT_EQ(error.code(), dlock::errc::newer_format) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(path(file) + formats));
    }
    EXPECT_EQ(contents(file), before);
  }
  bool has_warned(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return warnings_.find(text) != std::string::npos;
  }

  testkit::TempDir folder_;
  std::mutex mutex_;
  std::string warnings_;
};

TEST_F(LocalNewerFormat, EachCallIsRefusedAndTheFileStays) {
  auto locks = open();
  EXPECT_FALSE(locks.lock("x")->acquire(kSoon).release());
  EXPECT_FALSE(locks.semaphore("s", 3).acquire(1, kSoon).release());
  const auto of_lock = " has format 3; this program reads format 2; upgrade it";
  const auto of_permits = " has format 2; this program reads format 1; upgrade it";
  const struct {
    const char* what;
    std::string file;
    const char* stamp;
    const char* formats;
    Call call;
  } rows[] = {
      {"try_acquire", file_name("x"), "dlock/3\n", of_lock,
       [](auto& all) { (void)all.lock("x")->try_acquire(); }},
      {"acquire", file_name("x"), "dlock/3\n", of_lock,
       [](auto& all) { (void)all.lock("x")->acquire(kSoon); }},
      {"status", file_name("x"), "dlock/3\n", of_lock, [](auto& all) { (void)all.status("x"); }},
      {"ask", file_name("x"), "dlock/3\n", of_lock, [](auto& all) { (void)all.ask("x"); }},
      {"permits", permits_file_name("s"), "dlock-permits/2 ", of_permits,
       [](auto& all) { (void)all.semaphore("s", 3).acquire(1, kSoon); }},
      {"status", permits_file_name("s"), "dlock-permits/2 ", of_permits,
       [](auto& all) { (void)all.semaphore_status("s"); }},
      {"limit", permits_file_name("s"), "dlock-permits/2 ", of_permits,
       [](auto& all) { all.set_semaphore("s", 4); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.what) + " " + row.file);
    put(row.file, row.stamp);
    expect_refused(locks, row.file, row.formats, row.call);
  }
}

TEST_F(LocalNewerFormat, ARequestToReleaseIsRefusedAndWarnedOf) {
  const auto formats = " has format 2; this program reads format 1; upgrade it";
  const auto file = ask_file_name(file_name("x"));
  auto locks = open();
  auto held = locks.lock("x")->acquire({.wait = 20s, .revocable = true});
  // As dlock does: the holder is notified of a file that is renamed.
  put("request", "v=2 who=other");
  std::filesystem::rename(folder_ / "request", folder_ / file);
  expect_refused(locks, file, formats, [](auto& all) { (void)all.ask("x"); });
  EXPECT_TRUE(
      testkit::eventually(testkit::patience(), [&] { return has_warned(path(file) + formats); }));
  EXPECT_FALSE(held.release());
}

}  // namespace
}  // namespace dlock::local
