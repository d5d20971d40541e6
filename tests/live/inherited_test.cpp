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
#include <future>
#include <set>
#include <sstream>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
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

/// The test program's own.
std::multiset<std::string> inherited_anyway() {
  Children children;
  for (unsigned way = 0; way < 3; ++way) children.start_one(way);
  return children.found();
}

/// Connection, subscription or watch, and what is asked on the way to a grant.
void connect_once(const std::string& url) {
  auto first = LockManager::open(url, quiet());
  auto held = first.lock("x")->acquire({.wait = std::chrono::seconds(30)});
  error_code maybe_too_short_for_an_answer;
  EXPECT_FALSE(first.lock("x")->try_acquire({.wait = std::chrono::milliseconds(3)}, {},
                                            maybe_too_short_for_an_answer));
  EXPECT_FALSE(held.release());
}

std::vector<std::string> stores(bool with_zookeeper) {
  std::vector<std::string> names;
  for (const auto* backend : OpenOptions::built_in().backends) {
    const bool wanted = with_zookeeper || backend->name != "zookeeper";
    if (wanted && backend->name != "memory") names.emplace_back(backend->name);
  }
  return names;
}

std::string name_of(const testing::TestParamInfo<std::string>& info) { return info.param; }

class Inherited : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Stores, Inherited, testing::ValuesIn(stores(true)), name_of);

/// Not ZooKeeper's: its C library opens its socket for children, too, and tells us of it when the
/// call in which it does so has returned.
class InheritedFromBirth : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Stores, InheritedFromBirth, testing::ValuesIn(stores(false)), name_of);

TEST_P(InheritedFromBirth, P07_AProgramStartedDuringAConnectInheritsNothing) {
  constexpr int kConnects = 200;
  const auto store = start_store(GetParam());
  const auto ours = inherited_anyway();
  Children children;
  std::atomic<bool> over = false;
  auto starter = std::async(std::launch::async, [&] {
    for (unsigned way = 0; !over; ++way) children.start_one(way);
  });
  const auto end = within(std::chrono::seconds(40));
  int connects = 0;
  try {
    for (; connects < kConnects && Clock::now() < end; ++connects) connect_once(store.url);
  } catch (const LockError& error) {
    ADD_FAILURE() << error.what();
  }
  over = true;
  starter.get();
  auto found = children.found();
  for (const auto& one : ours) found.erase(one);
  // OpenSSL reads its configuration, once, by fopen().
  std::erase_if(found, [](const auto& one) { return one.ends_with("/openssl.cnf"); });
  std::printf("%s: %d connects, %u programs, %zu descriptors inherited\n", GetParam().c_str(),
              connects, children.started(), found.size());
  EXPECT_TRUE(found.empty()) << found.size() << ", for example " << *found.begin();
  EXPECT_GE(connects, 20);
  EXPECT_GE(children.started(), 20U);
}

TEST_P(Inherited, P07_AProgramStartedWhileALockIsHeldInheritsNothing) {
  const auto store = start_store(GetParam());
  const auto ours = inherited_anyway();
  Children children;
  for (unsigned way = 0; way < 6; ++way) {
    auto locks = LockManager::open(store.url, quiet());
    auto held = locks.lock("x")->acquire({.wait = std::chrono::seconds(30)});
    children.start_one(way);
    EXPECT_FALSE(held.release());
  }
  auto found = children.found();
  for (const auto& one : ours) found.erase(one);
  EXPECT_TRUE(found.empty()) << found.size() << ", for example " << *found.begin();
}

}  // namespace
}  // namespace dlock::testkit
