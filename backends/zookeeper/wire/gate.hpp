// SPDX-License-Identifier: Apache-2.0
//
// How many of something may be under way at once; the others stand in line. Twenty thousand
// acquires that are all sent at once are all too late when they are answered, and are sent again:
// in turn, each is answered in time. Lives on one loop. The gate outlives its passes.
#pragma once

#include <cstddef>
#include <deque>

#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {

class Gate {
 public:
  explicit Gate(std::size_t places) : free_(places) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// A place in the line, then in the gate. Leaves at its end.
  class Pass {
   public:
    /// `urgent`: before all who are not. `signal` is notified when this pass is let in; it outlives
    /// the pass.
    Pass(Gate& gate, bool urgent, Signal& signal);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    bool inside() const noexcept { return inside_; }

   private:
    friend class Gate;
    Gate& gate_;
    Signal& signal_;
    bool inside_ = false;
  };

  /// How many stand in line.
  std::size_t waiting() const noexcept { return urgent_.size() + others_.size(); }

 private:
  void let_in();

  std::size_t free_;
  std::deque<Pass*> urgent_;
  std::deque<Pass*> others_;
};

}  // namespace dlock::zookeeper
