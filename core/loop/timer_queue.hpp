// SPDX-License-Identifier: Apache-2.0
//
// The pending timers of one loop, in order. Pure: whoever owns it asks for the next moment and says
// what time it is.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "dlock/spi/env.hpp"

namespace dlock::core {

class TimerQueue {
 public:
  TimerId add(TimePoint when, Job job);
  void remove(TimerId id) noexcept;
  /// Needs no memory.
  void move(TimerId id, TimePoint when) noexcept;
  /// The earliest moment, kNever if there is none.
  TimePoint next() const noexcept;
  /// Takes the earliest job out if it is due, else an empty one.
  Job take_due(TimePoint now);

 private:
  struct Entry {
    TimerId id;
    Job job;
  };
  using Ordered = std::multimap<TimePoint, Entry>;
  Ordered ordered_;
  std::unordered_map<TimerId, Ordered::iterator> by_id_;
  TimerId last_id_ = 0;
};

}  // namespace dlock::core
