// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/promises.hpp"

#include <algorithm>

namespace dlock::simulation::redis {

void Promises::made(const std::string& lock, const Holder& holder) {
  all_[{lock, holder.owner_id}] = holder.until;
}

void Promises::settled(const std::string& lock, const std::optional<Holder>& left) {
  std::erase_if(all_, [&](const auto& one) {
    const auto& [name, owner_id] = one.first;
    return name == lock && (!left || left->owner_id != owner_id);
  });
}

Promises::Audit Promises::audit(TimePoint now, const LookUp& look_up) {
  Audit audit;
  std::erase_if(all_, [&](const auto& one) {
    const auto& [lock, owner_id] = one.first;
    const auto until = one.second;
    if (until <= now) return true;
    const auto found = look_up(lock);
    if (!found || found->owner_id != owner_id) {
      audit.broken.emplace_back(lock, owner_id);
      return true;
    }
    if (found->until < until)
      audit.again = std::min(audit.again.value_or(found->until), found->until);
    return false;
  });
  return audit;
}

}  // namespace dlock::simulation::redis
