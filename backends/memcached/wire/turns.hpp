// SPDX-License-Identifier: Apache-2.0
//
// Limits the number of callers at once; the others wait in order. Loop only.
#pragma once

#include <cstddef>
#include <deque>

#include "dlock/spi/signal.hpp"

namespace dlock::memcached {

/// Outlives its turns, or is ended before.
class Turns {
 public:
  Turns(Env& env, std::size_t at_once) : env_(env), at_once_(at_once) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// A place in line, from its constructor to its destructor.
  class Turn {
   public:
    explicit Turn(Turns& turns);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    bool is_ours() const noexcept { return is_ours_; }
    /// Waits for its turn, until the deadline or until all waiting is ended.
    asio::awaitable<bool> wait(TimePoint deadline) { return called_.wait_until(deadline); }

   private:
    friend class Turns;
    Turns& turns_;
    Signal called_;
    bool is_ours_ = false;
  };

  /// Ends all waits.
  void end_waiting() noexcept;

 private:
  void admit() noexcept;

  Env& env_;
  const std::size_t at_once_;
  std::size_t taken_ = 0;
  std::deque<Turn*> waiting_;
};

}  // namespace dlock::memcached
