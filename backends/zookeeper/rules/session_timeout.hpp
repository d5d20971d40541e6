// SPDX-License-Identifier: Apache-2.0
//
// Whether a session timeout will do. A server grants what lies between its limits, by default 2 and
// 20 ticks, and clips the rest silently. Our deadline rule needs 3 ticks. The tick itself is not
// told to clients, but the minimum can be felt: by asking for less. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace dlock::zookeeper {

struct AskedTimeout {
  std::chrono::milliseconds asked{0};
  std::chrono::milliseconds granted{0};
};

/// What to ask a second, short-lived session for: it is granted as asked exactly if `timeout` has
/// three ticks or more.
std::chrono::milliseconds probe_timeout(std::chrono::milliseconds timeout);

/// The least that will do, of a session that is too short; empty of any other.
std::optional<std::chrono::milliseconds> least_timeout(AskedTimeout session,
                                                       std::optional<AskedTimeout> probe);

/// Empty if it will do, else a sentence that names the value to write. `probe`: what came of the
/// second session, if it came about.
std::string timeout_error(AskedTimeout session, std::optional<AskedTimeout> probe);

}  // namespace dlock::zookeeper
