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
  using ById = std::unordered_map<TimerId, Ordered::iterator>;

  /// The nodes of a few timers that are over, for the next: most guard one request.
  template <class Map>
  class Spare {
   public:
    Spare() { nodes_.reserve(16); }
    void keep(typename Map::node_type node) noexcept {
      if (nodes_.size() < nodes_.capacity()) nodes_.push_back(std::move(node));
    }
    /// Empty: there is none.
    typename Map::node_type take() noexcept {
      if (nodes_.empty()) return {};
      auto node = std::move(nodes_.back());
      nodes_.pop_back();
      return node;
    }

   private:
    std::vector<typename Map::node_type> nodes_;
  };

  Ordered::iterator place(TimePoint when, Entry entry);
  void name(TimerId id, Ordered::iterator place);
  Job take(ById::iterator timer) noexcept;

  Ordered ordered_;
  ById by_id_;
  Spare<Ordered> spare_ordered_;
  Spare<ById> spare_by_id_;
  TimerId last_id_ = 0;
};

}  // namespace dlock::core
