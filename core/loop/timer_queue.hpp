// SPDX-License-Identifier: Apache-2.0
//
// The pending timers of one loop, in order. Pure: whoever owns it asks for the next moment and says
// what time it is.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "dlock/spi/env.hpp"

namespace dlock::core {

class TimerQueue {
 public:
  TimerQueue();
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
  /// By what a timer's id begins with; used by one after the other.
  struct Slot {
    Ordered::iterator place;
    TimerId id = 0;  ///< of whose it is; of the next one while it is free
    std::size_t next_free = 0;
  };

  std::size_t take_slot();
  void free_slot(std::size_t slot) noexcept;
  /// Null: it is over.
  Slot* find(TimerId id) noexcept;
  Ordered::iterator place(TimePoint when, Entry entry);
  Job take(Slot& slot) noexcept;

  Ordered ordered_;
  std::vector<Slot> slots_;
  std::size_t first_free_ = 0;  ///< as long as it is below slots_.size()
  /// The nodes of a few timers that are over, for the next: most guard one request.
  std::vector<Ordered::node_type> spare_;
};

}  // namespace dlock::core
