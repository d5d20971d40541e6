// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/window_watch.hpp"

#include <algorithm>

#include "core/fsm/lease_fsm.hpp"

namespace dlock::core::migration {
namespace {

// Half of it for the program's clock, half for ours.
Duration margin_of(std::chrono::milliseconds lease) {
  return std::max<Duration>(default_drift_margin(lease), lease / 20);
}

}  // namespace

Duration WindowWatch::patience(std::chrono::milliseconds lease) { return lease + margin_of(lease); }

TimePoint WindowWatch::believed_until(TimePoint sent, std::chrono::milliseconds lease) {
  return sent + lease - margin_of(lease);
}

void WindowWatch::see(const Window& window, TimePoint sent, TimePoint answered) {
  if (window.born != born_) sights_.clear();
  born_ = window.born;
  lease_ = window.lease;
  last_sent_ = sent;
  std::map<std::string, Sight> now_here;
  for (const auto& program : window.programs) {
    const auto known = sights_.find(program.id);
    const bool same = known != sights_.end() && known->second.beat == program.beat;
    now_here[program.id] = same ? known->second : Sight{program.beat, answered};
  }
  sights_ = std::move(now_here);
}

TimePoint WindowWatch::over_at(const Program& program) const {
  const auto known = sights_.find(program.id);
  if (known == sights_.end() || known->second.beat != program.beat) return kNever;
  return known->second.first + patience(lease_);
}

bool WindowWatch::is_over(const Program& program) const { return last_sent_ >= over_at(program); }

std::vector<std::string> WindowWatch::over() const {
  std::vector<std::string> ids;
  for (const auto& [id, sight] : sights_) {
    if (last_sent_ >= sight.first + patience(lease_)) ids.push_back(id);
  }
  return ids;
}

}  // namespace dlock::core::migration
