// SPDX-License-Identifier: Apache-2.0
//
// A log that blocks, throws or calls dlock delays nothing, and says what it could not take.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/manager/engine.hpp"
#include "dlock/dlock.hpp"
#include "dlock/memory.hpp"
#include "testkit/await.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using testkit::eventually;
using testkit::patience;
using Clock = std::chrono::steady_clock;

LockManager open_logged(const std::string& name,
                        std::function<void(LogLevel, std::string_view)> log = {}) {
  OpenOptions options;
  options.backends = {&memory::backend()};
  options.log = std::move(log);
  return LockManager::open("memory://log_" + name, std::move(options));
}

void write(LockManager& locks, std::string_view text) {
  dynamic_cast<core::Engine&>(locks.lock("any")->context()).log(LogLevel::warning, text);
}

void expect_works(LockManager& locks) {
  const auto before = Clock::now();
  EXPECT_TRUE(locks.lock("works")->acquire({.wait = 2s}));
  EXPECT_LT(Clock::now() - before, 2s);
}

/// What all lines about dropped ones in `text` add up to: a thread that begins late tells of
/// those before it and of those since in two.
int dropped_in(const std::string& text) {
  static const std::regex told("([0-9]+) lines were dropped");
  int sum = 0;
  for (std::sregex_iterator one(text.begin(), text.end(), told), end; one != end; ++one) {
    sum += std::stoi((*one)[1]);
  }
  return sum;
}

/// Standard error is a pipe that is full, until somebody reads it.
class FullStandardError {
 public:
  FullStandardError() : before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string block(4096, '.');
    while (::write(ends_[1], block.data(), block.size()) > 0) ++blocks_;
    ::fcntl(ends_[1], F_SETFL, 0);
    ::dup2(ends_[1], STDERR_FILENO);
    ::close(ends_[1]);
  }
  ~FullStandardError() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(ends_[0]);  // whoever is stuck in it gets EPIPE
  }
  FullStandardError(const FullStandardError&) = delete;
  FullStandardError& operator=(const FullStandardError&) = delete;

  /// Reads until `text` has come.
  std::string read_until(std::string_view text) {
    std::string all;
    std::array<char, 65536> some{};
    const auto until = Clock::now() + 20s;
    while (all.find(text) == std::string::npos && Clock::now() < until) {
      pollfd polled{ends_[0], POLLIN, 0};
      if (::poll(&polled, 1, 100) <= 0) continue;
      const auto got = ::read(ends_[0], some.data(), some.size());
      if (got > 0) all.append(some.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  int before_;
  std::array<int, 2> ends_{};
  int blocks_ = 0;
};

TEST(Log, AWarningOfOneTextIsLoggedOncePerProcess) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto keep = [&](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(text);
  };
  const auto warn = [](LockManager& locks, std::string_view text) {
    dynamic_cast<core::Engine&>(locks.lock("any")->context()).warn_once(text);
  };
  {
    auto one = open_logged("once_a", keep);
    auto other = open_logged("once_b", keep);
    warn(one, "store 'a' promises little");
    warn(other, "store 'a' promises little");
    warn(one, "store 'a' promises little");
    warn(other, "store 'b' promises little");
  }
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines,
            (std::vector<std::string>{"store 'a' promises little", "store 'b' promises little"}));
}

TEST(Log, P03_AFullStandardErrorDelaysNothingAndWhatIsDroppedIsCounted) {
  FullStandardError full;
  auto locks = open_logged("full");
  expect_works(locks);
  write(locks, "the first");
  for (int i = 1; i <= 1500; ++i) write(locks, fmt::format("line {} of 1500", i));
  expect_works(locks);
  const auto all = full.read_until("line 999 of 1500");
  EXPECT_NE(all.find("[warning] dlock: the first"), std::string::npos);
  // A thousand wait; of the 501 others the first may have been on its way already.
  EXPECT_TRUE(dropped_in(all) == 500 || dropped_in(all) == 501) << all.substr(all.size() - 200);
  expect_works(locks);
}

// Each loss is a line, and so is what the callbacks throw.
TEST(Log, P03_AFullStandardErrorDelaysNoKindOfLock) {
  FullStandardError full;
  auto locks = open_logged("kinds");
  auto operators = open_logged("kinds");
  const auto told = [](const LockHandle& handle) {
    const auto stop = handle.stop_token();
    return eventually(patience(), [&] { return stop.stop_requested(); });
  };
  LeaderOptions options;
  options.times.retry = 1ms;
  options.on_event = [](const LeaderEvent&) { throw std::runtime_error("told"); };
  Leader leader(locks, "leader", {}, options);
  leader.on_leader_changed([](const std::optional<Owner>&) {});
  leader.campaign();
  const auto before = Clock::now();
  for (int i = 0; i < 50; ++i) {
    const auto permit = locks.semaphore("permits", 2).acquire();
    operators.evict_permits("permits", permit.token().value(), {.at_once = true});
    ASSERT_TRUE(told(permit));
    const auto reader = locks.lock("shared")->acquire({.mode = Mode::shared});
    operators.evict("shared", reader.token().value(), {.at_once = true});
    ASSERT_TRUE(told(reader));
    const auto lock = locks.lock("lock")->acquire();
    operators.evict("lock", lock.token().value(), {.at_once = true});
    ASSERT_TRUE(told(lock));
    ASSERT_TRUE(eventually(patience(), [&] { return leader.is_leader(); }));
    const auto term = leader.token();
    operators.evict("leader", term.value(), {.at_once = true});
    ASSERT_TRUE(eventually(patience(), [&] { return leader.token() > term; }));
  }
  EXPECT_TRUE(Schedule(locks, "run", {.at_most_for = 10s}).run([](const std::stop_token&) {}));
  EXPECT_LT(Clock::now() - before, 30s);
  leader.resign();
  EXPECT_NE(full.read_until("is lost: broken").find("is lost: broken"), std::string::npos);
}

TEST(Log, P03_OneThatIsStuckDelaysTheEndByASecond) {
  auto end = std::make_shared<std::promise<void>>();
  {
    auto locks = open_logged(
        "stuck", [over = end->get_future().share()](LogLevel, std::string_view) { over.wait(); });
    expect_works(locks);
    write(locks, "the first");
    write(locks, "the second");
    const auto before = Clock::now();
    locks.close();
    EXPECT_LT(Clock::now() - before, 5s);
  }
  end->set_value();
}

TEST(Log, OneThatCallsDlockDoesNotWaitForItself) {
  std::promise<void> called;
  std::atomic<bool> is_first = true;
  std::unique_ptr<LockManager> locks;
  locks = std::make_unique<LockManager>(open_logged("calls", [&](LogLevel, std::string_view) {
    // What is said while the manager ends must not use it.
    if (!is_first.exchange(false)) return;
    {
      const auto held = locks->lock("inside")->acquire({.wait = 10s});
      locks->status("inside");
    }
    called.set_value();
  }));
  write(*locks, "the first");
  EXPECT_EQ(called.get_future().wait_for(10s), std::future_status::ready);
  const auto before = Clock::now();
  locks.reset();
  EXPECT_LT(Clock::now() - before, 5s);
}

TEST(Log, OneThatThrowsGetsTheNextLine) {
  std::promise<void> second;
  auto locks = open_logged("throws", [&](LogLevel, std::string_view text) {
    if (text == "the first") throw std::runtime_error("full");
    second.set_value();
  });
  write(locks, "the first");
  write(locks, "the second");
  EXPECT_EQ(second.get_future().wait_for(10s), std::future_status::ready);
}

TEST(Log, LinesComeInOrderAndAreAllThereAtTheEnd) {
  std::vector<std::string> lines;
  std::vector<std::string> written;
  {
    auto locks =
        open_logged("order", [&](LogLevel, std::string_view text) { lines.emplace_back(text); });
    for (int i = 0; i < 900; ++i) write(locks, written.emplace_back(fmt::format("line {}", i)));
  }
  EXPECT_EQ(lines, written);
}

}  // namespace
}  // namespace dlock
