// SPDX-License-Identifier: Apache-2.0
//
// What the tests of leaders share.
#pragma once

#include <algorithm>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "dlock/leader.hpp"
#include "dlock/testing/store.hpp"
#include "testkit/await.hpp"

namespace dlock::leader_tests {

using namespace std::chrono_literals;  // NOLINT: a header of tests only
using testkit::eventually;
using testkit::patience;
using Kind = LeaderEvent::Kind;

/// Quick to be lost, and to be tried again.
inline constexpr testing::Times kShort{.lease = std::chrono::seconds(1),
                                       .patience = std::chrono::milliseconds(100)};

inline OpenOptions quiet() {
  OpenOptions options;
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

/// What a leader was told.
class Diary {
 public:
  LeaderOptions options(bool stand_again = false) {
    LeaderOptions options;
    options.times.retry = 10ms;
    options.stand_again = stand_again;
    options.observe_every = 20ms;
    options.on_event = [this](const LeaderEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
    return options;
  }
  std::vector<LeaderEvent> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  std::vector<Kind> kinds() const {
    std::vector<Kind> kinds;
    for (const auto& event : events()) kinds.push_back(event.kind);
    return kinds;
  }
  bool reaches(Kind kind, std::ptrdiff_t count = 1) const {
    return eventually(patience(), [&] {
      const auto all = kinds();
      return std::count(all.begin(), all.end(), kind) >= count;
    });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<LeaderEvent> events_;
};

inline void until_stopped(const std::stop_token& stop) {
  eventually(patience(), [&] { return stop.stop_requested(); });
}

}  // namespace dlock::leader_tests
