// SPDX-License-Identifier: Apache-2.0
//
// Memory and threads that run out at each point of a lock's life, one at a time, on every store. A
// program of its own does it (starved.cpp), so that its end is a finding and not the test's end.
// Some of the later points, or with DLOCK_EVERY_POINT in the environment (15 minutes) all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "dlock/lock_manager.hpp"
#include "dlock/spi/descriptor.hpp"
#include "testkit/process.hpp"
#include "tests/support/every_store.hpp"

namespace dlock::testkit {
namespace {

using namespace std::chrono_literals;

constexpr const char* kImpatient = "connect_timeout=2s&request_timeout=500ms&release_timeout=500ms";

std::string url_of(const RunningStore& store) {
  if (store.backend == "zookeeper") return store.url + "app?session_timeout=1500ms&" + kImpatient;
  if (store.backend == "redis") return store.url + "?lease=600ms&" + kImpatient;
  if (store.backend == "memcached") return store.url + "?lease=3s&" + kImpatient;
  return store.url + "?" + kImpatient;
}

struct Sample {
  std::uint64_t first = 1;
  std::uint64_t stride = 1;
  std::uint64_t last = 0;
};

/// All of the first, then some of the others.
std::vector<Sample> samples(std::uint64_t count, std::uint64_t all, std::uint64_t some) {
  std::vector<Sample> result;
  result.push_back({1, 1, std::min(count, all)});
  if (count > all)
    result.push_back({all + 1, std::max<std::uint64_t>((count - all) / some, 1), count});
  return result;
}

class Starvation {
 public:
  Starvation(std::string url, std::string phase, std::string kind)
      : url_(std::move(url)), phase_(std::move(phase)), kind_(std::move(kind)) {}

  std::uint64_t count() {
    Process program(options({"count"}));
    const auto line = program.read_line(within(60s)).value_or("nothing");
    std::istringstream words(line);
    std::string word;
    std::uint64_t number = 0;
    words >> word >> number;
    EXPECT_EQ(word, "count") << line << program.collected_stderr();
    return number;
  }

  void run(Sample sample) {
    while (sample.first <= sample.last) {
      Process program(options({std::to_string(sample.first), std::to_string(sample.stride),
                               std::to_string(sample.last)}));
      const auto last = follow(program);
      sample.first = last + sample.stride;
    }
  }

  std::string summary() const {
    std::string text = fmt::format("{} {}: {} points", phase_, kind_, points_);
    for (const auto& [how, times] : outcomes_) text += fmt::format("\n    {:5} x {}", times, how);
    return text;
  }

 private:
  ProcessOptions options(std::vector<std::string> more) const {
    ProcessOptions options;
    options.argv = {DLOCK_STARVED, url_, phase_, kind_};
    options.argv.insert(options.argv.end(), more.begin(), more.end());
    return options;
  }

  /// The last point that it came to.
  std::uint64_t follow(Process& program) {
    std::uint64_t at = 0;
    bool open = false;
    while (const auto line = program.read_line(within(90s))) {
      std::istringstream words(*line);
      std::string word;
      words >> word >> at;
      open = word == "at";
      if (open) {
        ++points_;
        continue;
      }
      std::string rest;
      std::getline(words, rest);
      ++outcomes_[rest];
      if (word == "bad") ADD_FAILURE() << phase_ << " " << kind_ << " " << *line;
    }
    const auto status = program.wait(within(5s));
    if (open || !status || !status->success()) {
      ++outcomes_["ended"];
      ADD_FAILURE() << phase_ << " " << kind_ << " " << at << " ended the program: "
                    << (status ? fmt::format("status {}, signal {}", status->code, status->signal)
                               : "it hung")
                    << "\n"
                    << program.collected_stderr();
      if (at == 0) at = UINT64_MAX / 2;
    }
    return at;
  }

  const std::string url_;
  const std::string phase_;
  const std::string kind_;
  std::uint64_t points_ = 0;
  std::map<std::string, int> outcomes_;
};

// Each phase in a process of its own, some at a time: most of their time they wait for leases.
constexpr std::size_t kAtATime = 4;

class OutOf : public testing::TestWithParam<std::string> {
 protected:
  void starve(const std::string& kind, const std::vector<std::string>& phases, std::uint64_t all,
              std::uint64_t some) {
    const char* const every = std::getenv("DLOCK_EVERY_POINT");
    if (every != nullptr) all = std::numeric_limits<std::uint64_t>::max();
    auto store = running();
    const auto url = url_of(store);
    std::mutex mutex;
    std::size_t next = 0;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kAtATime; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          std::string phase;
          {
            const std::lock_guard lock(mutex);
            if (next == phases.size()) return;
            phase = phases[next++];
          }
          if (!has(phase)) continue;
          Starvation starvation(url, phase, kind);
          const auto count = starvation.count();
          for (const auto& sample : samples(count, all, some)) starvation.run(sample);
          const std::lock_guard lock(mutex);
          std::cout << GetParam() << " " << starvation.summary() << " of " << count << std::endl;
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
  /// Without a lease nothing is renewed, and these two have no operator's break.
  static bool has(const std::string& phase) {
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

// What the ZooKeeper client does without memory is its own business: there it is C++ that gets
// none. On Memcached each point at which the lock is held on waits for a renewal, a second: fewer.
TEST_P(OutOfMemory, P12_EachAllocationFailsOnce) {
  const auto* kind = GetParam() == "zookeeper" ? "cpp" : "all";
  const bool slow = GetParam() == "memcached";
  starve(kind, {"wait", "acquire", "renew", "lose", "first", "connect"}, slow ? 12 : 100,
         slow ? 10 : 40);
  starve(kind, {"close", "look", "release", "drop", "export", "lead", "run"}, slow ? 40 : 100,
         slow ? 20 : 40);
}

TEST_P(OutOf, P04_ThreadsOneByOne) {
  starve("thread",
         {"first", "connect", "acquire", "wait", "renew", "look", "release", "drop", "close",
          "export", "lead", "run"},
         20, 5);
}

}  // namespace
}  // namespace dlock::testkit
