// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/redis/wire.hpp"

#include <algorithm>

namespace dlock::simulation::redis {

void Wire::send(Duration travels, Job arrive) {
  if (silent_) return;
  auto due = world_.now() + travels;
  if (!on_its_way_.empty()) due = std::max(due, on_its_way_.back().due);
  on_its_way_.push_back({due, std::move(arrive)});
  if (!expecting_) expect_head(due);
}

void Wire::expect_head(TimePoint when) {
  expecting_ = true;
  // Held: what is on its way arrives, though the connection's end may be gone.
  world_.at(when, [wire = shared_from_this()] { wire->on_due(); });
}

void Wire::on_due() {
  expecting_ = false;
  if (on_its_way_.empty()) return;
  if (is_cut_()) {
    // TCP tries again after a while.
    return expect_head(world_.now() + world_.between(milliseconds(50), milliseconds(400)));
  }
  while (!on_its_way_.empty() && on_its_way_.front().due <= world_.now()) {
    auto arrive = std::move(on_its_way_.front().arrive);
    on_its_way_.pop_front();
    arrive();
  }
  if (!on_its_way_.empty() && !expecting_) expect_head(on_its_way_.front().due);
}

}  // namespace dlock::simulation::redis
