// SPDX-License-Identifier: Apache-2.0
//
// A folder in which others have put things where a lock's file should be.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "testkit/temp_dir.hpp"
#include "tests/live/hostile/hostile.hpp"

namespace dlock::hostile {
namespace {

using testkit::TempDir;
using testkit::write_file;
using Path = std::filesystem::path;

struct Row {
  const char* name;
  std::function<void(const Path& file)> make;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class HostileLocal : public testing::TestWithParam<Row> {};

TEST_P(HostileLocal, IsNeverBelieved) {
  const TempDir folder("dlock-hostile");
  const auto locks = folder / "locks";
  const auto url = fmt::format("file://{}?{}", locks.string(), kImpatient);
  {
    // The folder as dlock makes it, with a lock that works.
    const auto manager = attempt(url, "good");
    ASSERT_TRUE(manager.granted) << manager.text;
  }
  const auto file = locks / "bad.lock";
  GetParam().make(file);
  const auto result = attempt(url, "bad");
  expect_harmless(result, 16);
  EXPECT_NE(result.text.find("bad"), std::string::npos) << "names no file: " << result.text;
  EXPECT_TRUE(attempt(url, "good").granted) << "the others suffer";
  // And `list` gets past it.
  auto manager = LockManager::open(url, quiet());
  EXPECT_NO_THROW(manager.list());
}

const Row kRows[] = {
    {"Text", [](const Path& file) { write_file(file, "#!/bin/sh\n"); }},
    {"Truncated", [](const Path& file) { write_file(file, "dlock/1\n"); }},
    {"OtherVersion",
     [](const Path& file) { write_file(file, "dlock/9\n" + std::string(4096, 'x')); }},
    {"Zeros", [](const Path& file) { write_file(file, std::string(4096, '\0')); }},
    {"Damaged", [](const Path& file) { write_file(file, "dlock/1\n" + std::string(4096, 'x')); }},
    {"Huge",
     [](const Path& file) {
       write_file(file, "x");
       std::filesystem::resize_file(file, std::uintmax_t{1} << 40U);
     }},
    {"Folder", [](const Path& file) { std::filesystem::create_directory(file); }},
    {"Fifo", [](const Path& file) { ASSERT_EQ(::mkfifo(file.c_str(), 0666), 0); }},
    {"LinkToAFile",
     [](const Path& file) {
       write_file(file.parent_path().parent_path() / "target", "mine");
       std::filesystem::create_symlink("../target", file);
     }},
    {"LinkToItself", [](const Path& file) { std::filesystem::create_symlink("bad.lock", file); }},
    {"LinkToADevice", [](const Path& file) { std::filesystem::create_symlink("/dev/zero", file); }},
};

INSTANTIATE_TEST_SUITE_P(All, HostileLocal, testing::ValuesIn(kRows),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace dlock::hostile
