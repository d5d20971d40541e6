// SPDX-License-Identifier: Apache-2.0
//
// The pending timers of one loop, in order. Pure: its owner asks for the next time, and passes the
// present time.
//
// A heap in one piece of memory (four children each: Johnson, "Priority queues with update and
// finding minimum spanning trees", 1975), and where in it each timer is: most timers guard one
// request and are removed before they are due. The containers that have this
// (boost::heap::d_ary_heap) allocate a node for each timer, and one more to move it.
#pragma once

#include <cstdint>
#include <vector>

#include "dlock/spi/env.hpp"

namespace dlock::core {

class TimerQueue {
 public:
  TimerId add(TimePoint when, Job job);
  void remove(TimerId id) noexcept;
  /// The earliest moment, kNever if there is none.
  TimePoint next() const noexcept;
  /// Removes and returns the earliest job if it is due, else an empty one. Among jobs that are due
  /// at the same time, the first added is first.
  Job take_due(TimePoint now);

 private:
  /// Found by the first part of a timer's id; used again after its timer has ended.
  struct Slot {
    TimerId id = 0;  ///< its timer's; while it is free, that of the next timer
    Job job;
    std::size_t place = 0;  ///< in the heap; of the next free one while it is free
    bool is_used = false;
  };
  struct Entry {
    TimePoint when;
    std::uint64_t order = 0;
    std::size_t slot = 0;

    bool operator<(const Entry& other) const noexcept {
      return when != other.when ? when < other.when : order < other.order;
    }
  };

  void add_slot();
  /// Null: it is over.
  Slot* find(TimerId id) noexcept;
  Job take(Slot& slot) noexcept;
  void put(std::size_t place, const Entry& entry) noexcept;
  /// Where it belongs, from a place that may be wrong.
  void settle(std::size_t place, const Entry& entry) noexcept;

  std::vector<Entry> heap_;
  std::vector<Slot> slots_;
  std::size_t first_free_ = 0;  ///< valid while below slots_.size()
  std::uint64_t last_order_ = 0;
};

}  // namespace dlock::core
