// SPDX-License-Identifier: Apache-2.0
//
// Until when a session's locks may be believed. Pure; DESIGN section 3 has the trials.
//
// Only a write that the ensemble committed proves that we are alive: reads and pings are answered
// by a server that is already cut off. And a server tells its leader of our packets only with the
// next ping, so a write vouches for what came before it, not for itself:
//
//   valid_until = min(stamp + 2T/3, base + 11T/12)
//
// stamp = the moment before the write was sent; base = the same of the newest request that had been
// *answered* at least T/4 before that, or of the session's creation. Answered, not sent: requests
// that were held back on their way reach the server together with the write, and its leader has
// heard of none of them (seen: a rival's grant 27 ms after, and once before, the moment that a base
// chosen by its sending gave).
#pragma once

#include <deque>

#include "dlock/clock.hpp"

namespace dlock::zookeeper {

class DeadlineRule {
 public:
  DeadlineRule() = default;
  /// `created`: before the request that made the session was sent. `timeout`: as the server
  /// granted.
  DeadlineRule(TimePoint created, Duration timeout);

  /// At `received` came a server's answer to what was sent at `sent`. In the order of sending.
  void answered(TimePoint sent, TimePoint received);
  /// The same, and it was a write: its answer came from a majority.
  void committed(TimePoint sent, TimePoint received);

  /// Before any committed write: the clock's beginning. Never goes back.
  TimePoint valid_until() const noexcept { return valid_until_; }
  /// Returns when the next write is due. A write that is lost can then be repeated in time. It is a
  /// little more than half an interval after the last one, whose predecessor can be its base.
  TimePoint renew_at() const noexcept { return last_write_ + timeout_ * 13 / 100; }
  Duration timeout() const noexcept { return timeout_; }
  /// A quarter of the timeout: how often something must be sent.
  Duration interval() const noexcept { return timeout_ / 4; }

 private:
  TimePoint base_for(TimePoint write) const noexcept;

  TimePoint created_{};
  Duration timeout_{};
  struct Mark {
    TimePoint sent;
    TimePoint received;
  };
  std::deque<Mark> answered_;
  TimePoint last_write_{};  ///< when its answer came
  TimePoint valid_until_{};
};

}  // namespace dlock::zookeeper
