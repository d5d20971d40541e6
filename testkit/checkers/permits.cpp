// SPDX-License-Identifier: Apache-2.0
#include "testkit/checkers/permits.hpp"

#include <fmt/format.h>

namespace dlock::checkers {

Violations check_permits(const History& history, std::uint64_t limit) {
  Violations found;
  const auto grants = grants_of(history, found);
  for (const auto& [id, grant] : grants) {
    if (grant.permits == 0) continue;
    std::uint64_t held = 0;
    for (const auto& [other_id, other] : grants) {
      const bool counts = other_id == id || other.believed_at(grant.granted);
      if (counts && other.name == grant.name) held += other.permits;
    }
    if (held <= limit) continue;
    found.push_back({fmt::format("{} permits of '{}' are held with grant {} to {}, of {}", held,
                                 grant.name, id, grant.client, limit),
                     grant.granted});
  }
  return found;
}

}  // namespace dlock::checkers
