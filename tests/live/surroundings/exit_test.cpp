// SPDX-License-Identifier: Apache-2.0
//
// The end of a process whose locks have static storage, under valgrind, on every store: no touch of
// what has ended already, the lock given back, in a bounded time.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dlock/lock_manager.hpp"
#include "testkit/process.hpp"
#include "tests/live/surroundings/stores.hpp"

namespace dlock::testkit {
namespace {

/// For a process under valgrind on a loaded machine.
constexpr auto kExitBound = 30s;

/// Returns the URL with times that a program under valgrind keeps on a loaded machine.
std::string patient(std::string url) {
  const std::pair<const char*, const char*> times[] = {
      {"lease=600ms", "lease=6s"},
      {"session_timeout=1500ms", "session_timeout=6s"},
      {"connect_timeout=2s", "connect_timeout=20s"},
      {"request_timeout=500ms", "request_timeout=5s"}};
  for (const auto& [from, to] : times) {
    if (const auto at = url.find(from); at != std::string::npos) {
      url.replace(at, std::string_view(from).size(), to);
    }
  }
  return url;
}

class Exit : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Process> start(const std::string& order) {
    ProcessOptions options;
    options.argv = {"valgrind", "--quiet", "--error-exitcode=99", DLOCK_STATIC_EXIT, url_, order};
    auto program = std::make_unique<Process>(std::move(options));
    EXPECT_EQ(program->read_line(patience()), "held") << program->collected_stderr();
    return program;
  }
  static void expect_clean_end(Process& program) {
    program.close_stdin();
    const auto status = program.wait(within(kExitBound));
    ASSERT_TRUE(status) << "no end";
    EXPECT_EQ(status->signal, 0);
    EXPECT_EQ(status->code, 0) << program.collected_stderr();
  }
  bool is_free() {
    auto rival = LockManager::open(url_, quiet());
    return static_cast<bool>(rival.lock("static")->try_acquire({.wait = 200ms}));
  }

  SurroundedStore store_{GetParam()};
  const std::string url_ = patient(store_.url());
};
INSTANTIATE_TEST_SUITE_P(Stores, Exit, testing::ValuesIn(shared_stores()),
                         [](const auto& one) { return one.param; });

TEST_P(Exit, P06_StaticsInEitherOrderGiveTheLockBack) {
  for (const auto* order : {"manager-first", "handle-first"}) {
    const auto program = start(order);
    EXPECT_FALSE(is_free()) << order;
    expect_clean_end(*program);
    EXPECT_TRUE(is_free()) << order << ": the lock was not given back";
  }
}

TEST_P(Exit, P06_WithTheServerGoneOrMadeAnewMeanwhile) {
  for (const auto* order : {"manager-first", "handle-first"}) {
    auto program = start(order);
    store_.vanish();
    expect_clean_end(*program);
    store_.come_back();
    program = start(order);
    store_.vanish();
    store_.come_back();
    expect_clean_end(*program);
  }
}

}  // namespace
}  // namespace dlock::testkit
