// SPDX-License-Identifier: Apache-2.0
#include "backends/zookeeper/wire/gate.hpp"

#include <algorithm>

namespace dlock::zookeeper {

Gate::Pass::Pass(Gate& gate, bool urgent, Signal& signal) : gate_(gate), signal_(signal) {
  if (gate.free_ > 0) {
    --gate.free_;
    inside_ = true;
  } else {
    (urgent ? gate.urgent_ : gate.others_).push_back(this);
  }
}

Gate::Pass::~Pass() {
  if (inside_) {
    ++gate_.free_;
    gate_.let_in();
  } else {
    std::erase(gate_.urgent_, this);
    std::erase(gate_.others_, this);
  }
}

void Gate::let_in() {
  while (free_ > 0 && waiting() > 0) {
    auto& line = urgent_.empty() ? others_ : urgent_;
    auto* next = line.front();
    line.pop_front();
    --free_;
    next->inside_ = true;
    next->signal_.notify();
  }
}

}  // namespace dlock::zookeeper
