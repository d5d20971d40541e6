// SPDX-License-Identifier: Apache-2.0
//
// Computes until when a session's locks are valid. Pure.
//
// Only a write that the ensemble committed proves that the session lives: a server that is already
// cut off still answers reads and pings. And a server reports a client's packets to its leader only
// with the next ping. So a write proves the requests before it, not itself:
//
//   valid_until = min(stamp + 2T/3, base + 11T/12)
//
// stamp = the time just before the write was sent; base = the same time of the newest request that
// was *answered* at least T/4 before that, or of the session's creation. Answered, not sent:
// requests that were delayed on the way reach the server together with the write, and its leader
// knows none of them. (Seen with a base chosen by its sending: another client was granted the lock
// 27 ms after valid_until, and once before it.)
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

  /// A server's answer to the request sent at `sent` arrived at `received`. Called in the order of
  /// sending.
  void answered(TimePoint sent, TimePoint received);
  /// As answered(), for a write: a majority has confirmed it.
  void committed(TimePoint sent, TimePoint received);

  /// The beginning of the clock before any committed write. Never decreases.
  TimePoint valid_until() const noexcept { return valid_until_; }
  /// Returns when the next write is due. A write that is lost can then be repeated in time. It is a
  /// little more than half an interval after the last one, whose predecessor can be its base.
  TimePoint renew_at() const noexcept { return last_write_ + timeout_ * 13 / 100; }
  Duration timeout() const noexcept { return timeout_; }
  /// A quarter of the timeout: the interval in which a request must be sent.
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
  TimePoint last_write_{};  ///< time of its answer
  TimePoint valid_until_{};
};

}  // namespace dlock::zookeeper
