// SPDX-License-Identifier: Apache-2.0
//
// Programs that another thread starts while stores are connected to: they inherit nothing of ours,
// at whatever moment of a connection they come. Else such a child could speak as us, and would keep
// a dead process's connections open.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <thread>

#include "dlock/backend.hpp"
#include "dlock/lock_manager.hpp"
#include "testkit/await.hpp"
#include "testkit/temp_dir.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::testkit {
namespace {

/// Starts programs in each way that there is, which tell what they have inherited.
class Children {
 public:
  void start_one(unsigned way) {
    const std::string command = std::string(DLOCK_DESCRIPTORS) + " " + file_.string();
    if (way % 3 == 0) {
      EXPECT_EQ(std::system(command.c_str()), 0);
    } else if (way % 3 == 1) {
      spawn();
    } else {
      FILE* const pipe = ::popen(command.c_str(), "r");
      ASSERT_NE(pipe, nullptr);
      EXPECT_EQ(::pclose(pipe), 0);
    }
    ++started_;
  }
  unsigned started() const { return started_; }

  /// What was found, and how often a child told of nothing else.
  std::multiset<std::string> found() const {
    std::multiset<std::string> all;
    std::istringstream lines(read_file(file_));
    for (std::string line; std::getline(lines, line);) {
      if (line != ".") all.insert(line);
    }
    return all;
  }

 private:
  void spawn() {
    std::string program = DLOCK_DESCRIPTORS;
    std::string argument = file_.string();
    std::array<char*, 3> arguments{program.data(), argument.data(), nullptr};
    pid_t pid = 0;
    ASSERT_EQ(::posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }

  const TempDir folder_{"dlock-descriptors"};
  const std::filesystem::path file_ = folder_ / "found";
  std::atomic<unsigned> started_ = 0;
};

OpenOptions quiet() {
  auto options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

/// Connection, subscription or watch, and what is asked on the way to a grant.
void connect_once(const std::string& url) {
  auto first = LockManager::open(url, quiet());
  auto held = first.lock("x")->acquire({.wait = std::chrono::seconds(30)});
  EXPECT_FALSE(first.lock("x")->try_acquire({.wait = std::chrono::milliseconds(3)}));
  EXPECT_FALSE(held.release());
}

std::vector<std::string> all_stores() {
  std::vector<std::string> names;
  for (const auto* backend : OpenOptions::built_in().backends) {
    if (backend->name != "memory") names.emplace_back(backend->name);
  }
  return names;
}

std::string name_of(const testing::TestParamInfo<std::string>& info) { return info.param; }

class Inherited : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Stores, Inherited, testing::ValuesIn(all_stores()), name_of);

TEST_P(Inherited, P07_AProgramStartedDuringAConnectInheritsNothing) {
  constexpr int kConnects = 300;
  const auto store = start_store(GetParam());
  Children before;
  for (unsigned way = 0; way < 3; ++way) before.start_one(way);
  const auto ours = before.found();  // the test program's own
  Children children;
  std::atomic<bool> over = false;
  std::thread starter([&] {
    for (unsigned way = 0; !over; ++way) children.start_one(way);
  });
  const auto end = within(std::chrono::seconds(40));
  int connects = 0;
  for (; connects < kConnects && Clock::now() < end; ++connects) connect_once(store.url);
  over = true;
  starter.join();
  auto found = children.found();
  for (const auto& one : ours) found.erase(one);
  std::printf("%s: %d connects, %u programs, %zu descriptors inherited\n", GetParam().c_str(),
              connects, children.started(), found.size());
  EXPECT_TRUE(found.empty()) << found.size() << ", for example " << *found.begin();
  EXPECT_GE(connects, 20);
  EXPECT_GE(children.started(), 20U);
}

}  // namespace
}  // namespace dlock::testkit
