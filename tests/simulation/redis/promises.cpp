// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/promises.hpp"

#include <algorithm>
#include <iterator>

namespace dlock::simulation::redis {
namespace {

auto find_holder(const std::vector<Promises::Holder>& holders, const std::string& owner_id) {
  return std::find_if(holders.begin(), holders.end(),
                      [&](const auto& holder) { return holder.owner_id == owner_id; });
}

}  // namespace

void Promises::made(const std::string& lock, const Holder& holder) {
  all_[{lock, holder.owner_id}] = holder.until;
}

std::vector<std::string> Promises::ended_early(const std::string& lock,
                                               const std::vector<Holder>& left,
                                               TimePoint now) const {
  std::vector<std::string> all;
  for (auto one = all_.lower_bound({lock, {}}); one != all_.end() && one->first.first == lock;
       ++one) {
    const auto& owner_id = one->first.second;
    if (one->second > now && find_holder(left, owner_id) == left.end()) all.push_back(owner_id);
  }
  return all;
}

void Promises::settled(const std::string& lock, const std::vector<Holder>& left) {
  auto one = all_.lower_bound({lock, {}});
  while (one != all_.end() && one->first.first == lock) {
    const bool is_over = find_holder(left, one->first.second) == left.end();
    one = is_over ? all_.erase(one) : std::next(one);
  }
}

Promises::Audit Promises::audit(TimePoint now, const LookUp& look_up) {
  Audit audit;
  std::erase_if(all_, [&](const auto& one) {
    const auto& [lock, owner_id] = one.first;
    const auto until = one.second;
    if (until <= now) return true;
    const auto holders = look_up(lock);
    const auto found = find_holder(holders, owner_id);
    if (found == holders.end()) {
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
