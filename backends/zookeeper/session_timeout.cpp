// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/session_timeout.hpp"

#include <fmt/format.h>

namespace dlock::zookeeper {
namespace {

using std::chrono::milliseconds;

/// `minimum` is two ticks; three are needed.
std::string too_short(milliseconds asked, milliseconds minimum) {
  return fmt::format(
      "the server's shortest session is {} ms, two of its ticks, and a lock needs three: write "
      "session_timeout={}ms or more instead of {}ms",
      minimum.count(), (minimum * 3 / 2 + milliseconds(minimum.count() % 2)).count(),
      asked.count());
}

}  // namespace

milliseconds feeler_timeout(milliseconds timeout) { return timeout * 2 / 3; }

std::string timeout_error(AskedTimeout session, std::optional<AskedTimeout> feeler) {
  if (session.granted > session.asked) return too_short(session.asked, session.granted);
  if (session.granted < session.asked) {
    return fmt::format(
        "the server clips session_timeout={}ms to {} ms: write session_timeout={}ms, or raise its "
        "maxSessionTimeout",
        session.asked.count(), session.granted.count(), session.granted.count());
  }
  if (feeler && feeler->granted > feeler->asked) return too_short(session.asked, feeler->granted);
  return {};
}

}  // namespace dlock::zookeeper
