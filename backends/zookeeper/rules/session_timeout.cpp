// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/rules/session_timeout.hpp"

#include <fmt/format.h>

namespace dlock::zookeeper {
namespace {

using std::chrono::milliseconds;

/// Three ticks; `minimum` is two.
milliseconds three_ticks(milliseconds minimum) {
  return minimum * 3 / 2 + milliseconds(minimum.count() % 2);
}

std::string too_short(milliseconds asked, milliseconds minimum) {
  return fmt::format(
      "the server's shortest session is {} ms, two of its ticks, and a lock needs three: write "
      "session_timeout={}ms or more instead of {}ms",
      minimum.count(), three_ticks(minimum).count(), asked.count());
}

}  // namespace

milliseconds probe_timeout(milliseconds timeout) { return timeout * 2 / 3; }

std::optional<milliseconds> least_timeout(AskedTimeout session, std::optional<AskedTimeout> probe) {
  if (session.granted > session.asked) return three_ticks(session.granted);
  const bool felt = session.granted == session.asked && probe && probe->granted > probe->asked;
  if (felt) return three_ticks(probe->granted);
  return std::nullopt;
}

std::string timeout_error(AskedTimeout session, std::optional<AskedTimeout> probe) {
  if (session.granted > session.asked) return too_short(session.asked, session.granted);
  if (session.granted < session.asked) {
    return fmt::format(
        "the server clips session_timeout={}ms to {} ms: write session_timeout={}ms, or raise its "
        "maxSessionTimeout",
        session.asked.count(), session.granted.count(), session.granted.count());
  }
  if (probe && probe->granted > probe->asked) return too_short(session.asked, probe->granted);
  return {};
}

}  // namespace dlock::zookeeper
