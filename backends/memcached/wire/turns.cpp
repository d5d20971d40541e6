// SPDX-License-Identifier: Apache-2.0
#include "backends/memcached/wire/turns.hpp"

#include <algorithm>

namespace dlock::memcached {

Turns::Turn::Turn(Turns& turns) : turns_(turns), called_(turns.env_) {
  if (turns_.taken_ < turns_.at_once_ && turns_.waiting_.empty()) {
    ++turns_.taken_;
    is_ours_ = true;
  } else {
    turns_.waiting_.push_back(this);
  }
}

Turns::Turn::~Turn() {
  if (is_ours_) {
    --turns_.taken_;
    turns_.admit();
  } else {
    turns_.waiting_.erase(std::find(turns_.waiting_.begin(), turns_.waiting_.end(), this));
  }
}

void Turns::admit() noexcept {
  while (taken_ < at_once_ && !waiting_.empty()) {
    auto* next = waiting_.front();
    waiting_.pop_front();
    ++taken_;
    next->is_ours_ = true;
    next->called_.notify();
  }
}

void Turns::end_waiting() noexcept {
  for (auto* turn : waiting_) turn->called_.notify();
}

}  // namespace dlock::memcached
