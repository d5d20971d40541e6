// SPDX-License-Identifier: Apache-2.0
//
// Sets a key if it does not exist, then reads some keys: two commands in one write, without a
// script. The server executes them in two steps. The values that the second command reads are from
// the time of the SET, or later. They also show whether the SET had an effect.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "backends/redis/wire/connection.hpp"

namespace dlock::redis {

struct SetAndLook {
  TimePoint since;
  Pending look;

  enum class Kind {
    found,     ///< `values`; empty if the read was refused
    not_sent,  ///< not executed
    unknown,   ///< maybe executed; the connection may be closed for it
  };
  struct Answer {
    Kind kind = Kind::unknown;
    Replies values;
    Failure failure;
  };
  /// Returns the result so far. May be called once.
  Answer answer(Env& env, Connection& connection) const;
};

/// Sends SET with NX and PX `time` for the first of `keys`, and MGET for all of them.
SetAndLook set_and_look(Env& env, Connection& connection, std::span<const Word> keys, Word value,
                        std::chrono::milliseconds time);

}  // namespace dlock::redis
