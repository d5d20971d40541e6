// SPDX-License-Identifier: Apache-2.0
//
// A key set if it is not there, and then some keys looked at: two commands in one write, with no
// script, and so in two steps on the server. What the look finds is of the moment when the key was
// set, or later; whether it was, the look shows as well.
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
    found,     ///< `values`; none where the look was refused
    not_sent,  ///< surely not done
    unknown,   ///< maybe done; the connection may be closed for it
  };
  struct Answer {
    Kind kind = Kind::unknown;
    Replies values;
    Failure failure;
  };
  /// What has come of it by now. Once.
  Answer answer(Env& env, Connection& connection) const;
};

/// SET the first of `keys` to `value` NX PX `time`, and MGET all of them.
SetAndLook set_and_look(Env& env, Connection& connection, std::span<const Word> keys, Word value,
                        std::chrono::milliseconds time);

}  // namespace dlock::redis
