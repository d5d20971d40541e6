// SPDX-License-Identifier: Apache-2.0
//
// What happened to the locks of a run, as an observer outside of dlock wrote it down: plain data on
// one clock, in the order of time. The checkers read it and nothing else, so that they cannot
// believe what dlock believes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/mode.hpp"

namespace dlock::checkers {

using GrantId = std::uint64_t;

enum class EventKind {
  wanted,     ///< a client began to ask for `name`
  given_up,   ///< ... and stopped asking without a grant
  granted,    ///< acquire returned: `name`, `client`, `token`, `until`
  extended,   ///< the holder may believe it up to `until`
  shared,     ///< the holder asked to be a reader: from here it claims no more than that
  releasing,  ///< the holder called release(): from here it claims nothing
  told_lost,  ///< the holder was notified of its loss
  dropped,    ///< the holder has dropped the handle of a lock that an operator broke
  died,       ///< `client` was killed: all its requests and beliefs end
  faulted,    ///< something was broken; progress is not owed any more
  healed,     ///< ... and all is whole again: stores and clients can reach each other
};

struct Event {
  TimePoint at;
  EventKind kind = EventKind::granted;
  std::string name;
  std::string client;
  GrantId grant = 0;  ///< unique in a run; of granted, extended, shared, releasing, told_lost
  Mode mode = Mode::exclusive;  ///< of granted
  std::optional<std::uint64_t> token;
  TimePoint until = kNever;   ///< the holder's local deadline; kNever: the store has no lease
  std::uint64_t permits = 0;  ///< of granted: so many of the semaphore `name`; 0: a lock
  bool is_broken = false;     ///< of told_lost: no client acquires the lock before `dropped`
};

using History = std::vector<Event>;

/// One broken promise: what, of whom, when, in words.
struct Violation {
  std::string what;
  TimePoint at;
};
using Violations = std::vector<Violation>;

/// A grant from its beginning to its end, put together from a history.
struct Grant {
  std::string name;
  std::string client;
  std::optional<std::uint64_t> token;
  TimePoint granted;
  std::optional<TimePoint> releasing;
  std::optional<TimePoint> told_lost;
  std::optional<TimePoint> died;
  /// The deadlines, by the time from which each was known.
  std::map<TimePoint, TimePoint> deadlines;
  Mode mode = Mode::exclusive;        ///< of the acquire
  std::optional<TimePoint> shared{};  ///< when it became a reader
  std::uint64_t permits = 0;          ///< of a semaphore

  /// The holder claims to be a reader only.
  bool is_reader_at(TimePoint when) const {
    return mode == Mode::shared || (shared && *shared <= when);
  }
  /// Whether the holder had reason to believe at `when` that the lock is its own.
  bool believed_at(TimePoint when) const;
};

/// The grants of a history, by id; what makes no sense (time running backwards, a grant twice, an
/// event of a grant that was never made, anything after its end) goes to `broken`.
std::map<GrantId, Grant> grants_of(const History& history, Violations& broken);

}  // namespace dlock::checkers
