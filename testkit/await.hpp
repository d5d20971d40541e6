// SPDX-License-Identifier: Apache-2.0
//
// Deadlines for tests, and waiting for what has no handle to wait on. A test never sleeps for a
// fixed time: it waits for the event, and the deadline only says when to give up.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace dlock::testkit {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// The deadline `duration` from now.
inline Deadline within(std::chrono::nanoseconds duration) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(duration);
}

/// How long to wait for something that surely comes: long enough for a busy machine under a
/// sanitizer, since nobody waits that long unless the test fails.
inline Deadline patience() { return within(std::chrono::seconds(60)); }

/// Asks `predicate` again and again until it says true (returns true) or the deadline has passed
/// (returns what a last question answers).
template <typename Predicate>
bool eventually(Deadline deadline, Predicate&& predicate) {
  std::chrono::microseconds pause{200};
  while (!predicate()) {
    if (Clock::now() >= deadline) return predicate();
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace dlock::testkit
