// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/network.hpp"

namespace dlock::simulation {

// Mostly a tenth of a millisecond, now and then much more, as on a busy switch.
Duration Network::latency() {
  if (world_.chance(0.02)) return world_.between(milliseconds(1), milliseconds(20));
  return world_.between(microseconds(40), microseconds(250));
}

Fate Network::fate(Process& from) {
  Fate fate;
  fate.there = latency();
  fate.back = latency();
  const auto found = armed_.find(&from);
  if (found == armed_.end()) return fate;
  auto armed = std::move(found->second);
  armed_.erase(found);
  const auto late = world_.between(milliseconds(20), milliseconds(1500));
  switch (armed.fault) {
    case Fault::request_lost:
      fate.request = Fate::Break::lost;
      break;
    case Fault::reply_lost:
      fate.reply = Fate::Break::lost;
      break;
    case Fault::request_late:
      fate.there += late;
      break;
    case Fault::reply_late:
      fate.back += late;
      break;
    case Fault::duplicated:
      fate.twice = true;
      break;
    case Fault::reset_before:
      fate.request = Fate::Break::reset;
      break;
    case Fault::reset_after:
      fate.reply = Fate::Break::reset;
      break;
    case Fault::overtaken:
      fate.overtaken = late;
      break;
    default:
      break;
  }
  world_.trace("{}: {} strikes its next message", from.name(), to_string(armed.fault));
  armed.done();
  return fate;
}

// What nobody asked for has no request to be struck.
Fate Network::push_fate(Process& to) {
  auto fate = this->fate(to);
  if (fate.request == Fate::Break::lost) fate.reply = Fate::Break::lost;
  if (fate.request == Fate::Break::reset || fate.overtaken) fate.reply = Fate::Break::reset;
  fate.back += fate.there;
  fate.there = {};
  fate.request = Fate::Break::none;
  fate.overtaken.reset();
  return fate;
}

void Network::arm(Process& process, Fault fault, Job done) {
  armed_.insert_or_assign(&process, Armed{fault, std::move(done)});
}

}  // namespace dlock::simulation
