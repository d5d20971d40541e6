// SPDX-License-Identifier: Apache-2.0
//
// Memory and threads that run out at each point of a lock's life, one at a time, on every store.
// Each point has a process of its own (starved.cpp): where an allocation fails, the process may
// end. Some of the later points, or with DLOCK_EVERY_POINT in the environment all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/process.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;

constexpr const char* kImpatient = "connect_timeout=2s&request_timeout=500ms&release_timeout=500ms";
constexpr const char* kLine =
    "dlock: out of memory; the process ends with status 71, so that it holds no lock\n";

std::string url_of(const RunningStore& store) {
  if (store.backend == "zookeeper") return store.url + "app?session_timeout=1500ms&" + kImpatient;
  if (store.backend == "redis") return store.url + "?lease=600ms&" + kImpatient;
  if (store.backend == "memcached") return store.url + "?lease=3s&" + kImpatient;
  return store.url + "?" + kImpatient;
}

/// One phase without memory, or without a thread, at each of some points.
class Starvation {
 public:
  Starvation(std::string url, std::string phase, std::string kind)
      : url_(std::move(url)), phase_(std::move(phase)), kind_(std::move(kind)) {}

  /// The first `all` points, then `some` of the others.
  void run(std::uint64_t all, std::uint64_t some) {
    const auto counted = ask({phase_, kind_, "0", name(0)}, 0);
    ASSERT_EQ(counted.rfind("count ", 0), 0U) << phase_ << ": " << counted;
    count_ = std::stoull(counted.substr(6));
    const auto stride = count_ > all ? std::max<std::uint64_t>((count_ - all) / some, 1) : 1;
    for (std::uint64_t n = 1; n <= count_; n += n < all ? 1 : stride) try_point(n);
    if (ended_.empty() || url_.rfind("memory:", 0) == 0) return;
    std::vector<std::string> words{"free"};
    for (const auto n : ended_) words.insert(words.end(), {name(n), name(n) + "-other"});
    EXPECT_EQ(ask(words, 0), "ok") << phase_ << ": still held after the end of the process";
  }

  std::string summary() const {
    auto text = fmt::format("{} {}: {} of {} points", phase_, kind_, points_, count_);
    for (const auto& [how, times] : outcomes_) text += fmt::format("\n    {:5} x {}", times, how);
    return text;
  }

 private:
  std::string name(std::uint64_t n) const {
    return fmt::format("{}-{}-{}-{}", phase_, kind_, ::getpid(), n);
  }
  void try_point(std::uint64_t n) {
    ++points_;
    const auto how = ask({phase_, kind_, std::to_string(n), name(n)}, n);
    ++outcomes_[how];
    if (how == kEnded) ended_.push_back(n);
    EXPECT_TRUE(how == kEnded || how.rfind("ok ", 0) == 0)
        << phase_ << " " << kind_ << " " << n << ": " << how;
  }
  /// What the program prints, or how it has ended.
  std::string ask(const std::vector<std::string>& words, std::uint64_t n) const {
    ProcessOptions options;
    options.argv = {DLOCK_STARVED, url_};
    options.argv.insert(options.argv.end(), words.begin(), words.end());
    Process program(std::move(options));
    const auto line = program.read_line(within(90s));
    const auto status = program.wait(within(5s));
    const auto error = program.collected_stderr();
    if (!status) return "it hung";
    if (line && status->success()) return *line;
    const bool may_end = n != 0 && kind_ != "thread";
    if (may_end && status->code == kOutOfMemoryStatus && error == kLine) return kEnded;
    return fmt::format("status {}, signal {}\n{}", status->code, status->signal, error);
  }

  static constexpr const char* kEnded = "the process was ended";
  const std::string url_;
  const std::string phase_;
  const std::string kind_;
  std::uint64_t count_ = 0;
  std::uint64_t points_ = 0;
  std::vector<std::uint64_t> ended_;
  std::map<std::string, int> outcomes_;
};

// Most of their time the processes wait for leases.
constexpr std::size_t kAtATime = 4;

class OutOf : public testing::TestWithParam<std::string> {
 protected:
  void starve(const std::string& kind, const std::vector<std::string>& phases, std::uint64_t all,
              std::uint64_t some) {
    if (std::getenv("DLOCK_EVERY_POINT") != nullptr) all = UINT64_MAX;
    auto store = running();
    const auto url = url_of(store);
    std::mutex mutex;
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kAtATime; ++i) {
      threads.emplace_back([&] {
        for (auto at = next++; at < phases.size(); at = next++) {
          if (!has(phases[at])) continue;
          Starvation starvation(url, phases[at], kind);
          starvation.run(all, some);
          const std::lock_guard lock(mutex);
          std::cout << GetParam() << " " << starvation.summary() << std::endl;
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }

 private:
  static RunningStore running() {
    if (GetParam() == "memory") return {"memory", "memory://starved", nullptr};
    return start_store(GetParam());
  }
  /// Without a lease nothing is renewed, and these two have no operator's break. Memcached cannot
  /// keep a lock for its process.
  static bool has(const std::string& phase) {
    if (phase == "cached") return GetParam() != "memcached";
    const bool plain = GetParam() == "memory" || GetParam() == "local";
    return !plain || (phase != "renew" && phase != "lose");
  }
};

std::vector<std::string> all_stores() {
  std::vector<std::string> names;
  for (const auto* backend : OpenOptions::built_in().backends) names.emplace_back(backend->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Stores, OutOf, testing::ValuesIn(all_stores()),
                         [](const auto& one) { return one.param; });

class OutOfMemory : public OutOf {};
INSTANTIATE_TEST_SUITE_P(Stores, OutOfMemory, testing::ValuesIn(all_stores()),
                         [](const auto& one) { return one.param; });

// ZooKeeper's C library does not check its own allocations, and OpenSSL does not recover from one
// that fails at its first use: there those of C++ fail.
TEST_P(OutOfMemory, P12_EachAllocationFailsOnce) {
  starve("cpp", {"cold"}, 100, 40);
  starve(GetParam() == "zookeeper" ? "cpp" : "all",
         {"first", "connect", "acquire", "several", "cached", "wait", "renew", "lose", "look",
          "export", "release", "drop", "lead", "run", "close"},
         100, 40);
}

TEST_P(OutOf, P04_ThreadsOneByOne) {
  starve("thread",
         {"first", "connect", "acquire", "wait", "renew", "look", "release", "drop", "close",
          "export", "lead", "run"},
         20, 5);
}

}  // namespace
}  // namespace dlock::testkit
