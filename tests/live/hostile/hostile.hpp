// SPDX-License-Identifier: Apache-2.0
//
// What the tests of hostile stores share: one attempt to get a lock through the public interface,
// and what it may cost: never a grant, never longer than was configured, never memory without end.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "dlock/lock_manager.hpp"
#include "dlock/options.hpp"
#include "testkit/await.hpp"

namespace dlock::hostile {

using namespace std::chrono_literals;

/// A line of /proc/self/status, in KiB.
inline long memory_kib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stol(line.substr(field.size() + 1));
  }
  return 0;
}

/// For a URL's query: everything is over soon.
inline constexpr const char* kImpatient =
    "connect_timeout=1s&request_timeout=500ms&release_timeout=500ms";

struct Attempt {
  bool granted = false;
  error_code error;
  std::string text;
  std::chrono::nanoseconds took{0};
  long grown_kib = 0;  ///< the highest, whatever was given back since
};

inline OpenOptions quiet() {
  OpenOptions options = OpenOptions::built_in();
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

/// Opens, acquires, closes.
inline Attempt attempt(const std::string& url, const std::string& name = "orders/42") {
  Attempt result;
  const long before = memory_kib("VmRSS");
  const auto start = testkit::Clock::now();
  {
    auto locks = LockManager::open(url, quiet());
    Diagnostics diagnostics;
    AcquireOptions options;
    options.wait = 1500ms;
    options.diagnostics = &diagnostics;
    const auto handle = locks.lock(name)->acquire(options, {}, result.error);
    result.granted = static_cast<bool>(handle);
    result.text = result.error.message() + ": " + diagnostics.server_text;
  }
  result.took = testkit::Clock::now() - start;
  result.grown_kib = memory_kib("VmHWM") - before;
  return result;
}

/// The configured times add up to 3.5 s; the rest is for a loaded machine.
inline void expect_harmless(const Attempt& attempt, long mib = 64) {
  EXPECT_FALSE(attempt.granted);
  EXPECT_TRUE(attempt.error) << "neither a lock nor an error";
  EXPECT_GT(attempt.text.size(), 10U) << "the error says nothing";
  EXPECT_LT(attempt.took, 15s) << attempt.text;
  EXPECT_LT(attempt.grown_kib, mib * 1024) << attempt.text;
}

}  // namespace dlock::hostile
