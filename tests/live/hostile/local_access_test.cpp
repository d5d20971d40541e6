// SPDX-License-Identifier: Apache-2.0
//
// Folders and files that the system does not let us use. Root may do anything, so a child process
// of nobody's stands in.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>

#include "testkit/temp_dir.hpp"
#include "tests/live/hostile/hostile.hpp"

namespace dlock::hostile {
namespace {

using testkit::TempDir;
using Path = std::filesystem::path;

constexpr uid_t kNobody = 65534;

/// What `work` says, in a process of its own.
std::string in_child(const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "no pipe";
  const auto child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const auto said = work();
    const auto put = ::write(ends[1], said.data(), said.size());
    ::_exit(put == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> some{};
  for (ssize_t got = 0; (got = ::read(ends[0], some.data(), some.size())) > 0;) {
    said.append(some.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int how = -1;
  if (child < 0 || ::waitpid(child, &how, 0) != child || how != 0) said += "; the child died";
  return said;
}

std::string word_for(const error_code& error) {
  if (!error) return "ok";
  return error == errc::access_denied ? "denied" : "other";
}

template <class Ask>
std::string told(Ask ask) {
  try {
    ask();
  } catch (const LockError& error) {
    return word_for(error.code());
  }
  return "ok";
}

struct Row {
  const char* name;
  mode_t parent;
  mode_t folder;
  mode_t file;
  const char* acquire;
  const char* status;
  const char* list;
  const char* names;  ///< the path in the error ends so
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class HostileLocalAccess : public testing::TestWithParam<Row> {};

TEST_P(HostileLocalAccess, IsSaidAndNothingIsGranted) {
  const auto& row = GetParam();
  const TempDir dir("dlock-access");
  const auto locks = dir / "base" / "locks";
  ASSERT_EQ(::mkdir((dir / "base").c_str(), 0755), 0);
  const auto url = fmt::format("file://{}?{}", locks.string(), kImpatient);
  const auto said = in_child([&]() -> std::string {
    if (!attempt(url, "bad").granted) return "no lock beforehand";
    const auto file = locks / "bad.lock";
    const bool set =
        ::chmod(file.c_str(), row.file) == 0 && ::chmod(locks.c_str(), row.folder) == 0 &&
        ::chmod((dir / "base").c_str(), row.parent) == 0 && ::chmod(dir.path().c_str(), 0755) == 0;
    if (!set) return "the modes cannot be set";
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) return "still root";
    const auto result = attempt(url, "bad");
    auto manager = LockManager::open(url, quiet());
    const auto status = told([&] { manager.status("bad"); });
    std::vector<LockError> unread;
    auto list = told([&] { manager.list({}, unread); });
    if (!unread.empty()) list += " without " + unread.front().server_text();
    if (list.find(file.string()) != std::string::npos) list = "all but the file";
    return fmt::format("acquire {}{}; status {}; list {}; {}", word_for(result.error),
                       result.granted ? " granted" : "", status, list, result.text);
  });
  // Else the folder cannot be removed by its owner.
  ::chmod((dir / "base").c_str(), 0755);
  ::chmod(locks.c_str(), 0755);
  const auto expected =
      fmt::format("acquire {}; status {}; list {}; ", row.acquire, row.status, row.list);
  EXPECT_EQ(said.substr(0, expected.size()), expected) << said;
  if (std::string_view(row.acquire) == "denied") {
    EXPECT_NE(said.find(dir.path().string() + row.names + ": "), std::string::npos) << said;
    EXPECT_NE(said.find("check owner and mode"), std::string::npos) << said;
  }
}

const Row kRows[] = {
    // Nothing is wrong: the others fail for the reason that they are about.
    {"Open", 0755, 0777, 0666, "ok granted", "ok", "ok", ""},
    {"FileUnreadable", 0755, 0777, 0000, "denied", "denied", "all but the file",
     "/base/locks/bad.lock"},
    {"FileReadOnly", 0755, 0777, 0444, "denied", "ok", "ok", "/base/locks/bad.lock"},
    {"FileWriteOnly", 0755, 0777, 0222, "denied", "denied", "all but the file",
     "/base/locks/bad.lock"},
    {"FolderClosed", 0755, 0000, 0666, "denied", "denied", "denied", "/base/locks"},
    {"FolderReadOnly", 0755, 0555, 0666, "denied", "denied", "denied", "/base/locks"},
    {"FolderNotSearchable", 0755, 0666, 0666, "denied", "denied", "denied", "/base/locks"},
    {"FolderNotReadable", 0755, 0333, 0666, "denied", "denied", "denied", "/base/locks"},
    {"ParentClosed", 0000, 0777, 0666, "denied", "denied", "denied", "/base/locks"},
};

INSTANTIATE_TEST_SUITE_P(All, HostileLocalAccess, testing::ValuesIn(kRows),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace dlock::hostile
