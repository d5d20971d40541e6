// SPDX-License-Identifier: Apache-2.0
//
// Limits the number of operations under way at once; the others are queued. If twenty thousand
// acquires are all sent at once, all answers are too late and all are sent again. In turn, each is
// answered in time. Lives on one loop. The gate outlives its passes.
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
    /// `urgent`: before all others. `signal` is notified when this pass is let in; it outlives the
    /// pass.
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

  /// Returns the number of queued passes.
  std::size_t waiting() const noexcept { return urgent_.size() + others_.size(); }

 private:
  void let_in();

  std::size_t free_;
  std::deque<Pass*> urgent_;
  std::deque<Pass*> others_;
};

}  // namespace dlock::zookeeper
