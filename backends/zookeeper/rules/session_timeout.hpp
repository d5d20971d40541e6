// SPDX-License-Identifier: Apache-2.0
//
// Decides whether a session timeout is sufficient. A server grants a timeout between its limits, by
// default 2 and 20 ticks, and clips others silently. The deadline rule needs 3 ticks. Clients do
// not receive the length of a tick, but a request for a shorter timeout shows the minimum. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace dlock::zookeeper {

struct AskedTimeout {
  std::chrono::milliseconds asked{0};
  std::chrono::milliseconds granted{0};
};

/// Returns the timeout to request for a second, short-lived session. It is granted unchanged
/// exactly if `timeout` has three ticks or more.
std::chrono::milliseconds probe_timeout(std::chrono::milliseconds timeout);

/// Returns the shortest sufficient timeout if the session's is too short, otherwise empty.
std::optional<std::chrono::milliseconds> least_timeout(AskedTimeout session,
                                                       std::optional<AskedTimeout> probe);

/// Returns an empty text if the timeout is sufficient, otherwise a sentence that names the value to
/// write. `probe`: the result of the second session, if there was one.
std::string timeout_error(AskedTimeout session, std::optional<AskedTimeout> probe);

}  // namespace dlock::zookeeper
