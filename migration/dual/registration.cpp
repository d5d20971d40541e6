// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/registration.hpp"

#include <algorithm>
#include <utility>

namespace dlock::core::migration {

void Registration::extend(TimePoint until) noexcept {
  if (!over_) until_.store(until.time_since_epoch().count(), std::memory_order_release);
}

void Registration::end(LossReason why) {
  if (over_) return;
  promised_ = until();
  over_ = true;
  until_.store(TimePoint::min().time_since_epoch().count(), std::memory_order_release);
  for (const auto& dependent : std::exchange(dependents_, {})) {
    if (const auto alive = dependent.lock()) alive->on_registration_over(why);
  }
}

void Registration::add(std::weak_ptr<Dependent> dependent) {
  if (dependents_.size() >= sweep_at_) {
    std::erase_if(dependents_, [](const std::weak_ptr<Dependent>& one) { return one.expired(); });
    sweep_at_ = std::max(sweep_at_, 2 * dependents_.size());
  }
  dependents_.push_back(std::move(dependent));
}

}  // namespace dlock::core::migration
