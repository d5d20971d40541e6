// SPDX-License-Identifier: Apache-2.0
#include "dlock/capabilities.hpp"

#include "dlock/lock_handle.hpp"

namespace dlock::inline v0 {

const char* to_string(SelfTestReport::Result value) noexcept {
  switch (value) {
    case SelfTestReport::Result::passed:
      return "passed";
    case SelfTestReport::Result::wrong:
      return "wrong";
    case SelfTestReport::Result::not_tested:
      break;
  }
  return "not_tested";
}

const char* to_string(Guarantee value) noexcept {
  return value == Guarantee::exclusive ? "exclusive" : "best_effort";
}

const char* to_string(TokenStrength value) noexcept {
  switch (value) {
    case TokenStrength::durable:
      return "durable";
    case TokenStrength::time_seeded:
      return "time_seeded";
    case TokenStrength::none:
      break;
  }
  return "none";
}

const char* to_string(WakeUp value) noexcept { return value == WakeUp::push ? "push" : "poll"; }

const char* to_string(LeaseScope value) noexcept {
  switch (value) {
    case LeaseScope::claim:
      return "claim";
    case LeaseScope::session:
      return "session";
    case LeaseScope::none:
      break;
  }
  return "none";
}

const char* to_string(HandleState value) noexcept {
  switch (value) {
    case HandleState::held:
      return "held";
    case HandleState::suspect:
      return "suspect";
    case HandleState::lost:
      return "lost";
    case HandleState::released:
      break;
  }
  return "released";
}

const char* to_string(LossReason value) noexcept {
  switch (value) {
    case LossReason::none:
      return "none";
    case LossReason::expired:
      return "expired";
    case LossReason::session_ended:
      return "session_ended";
    case LossReason::removed:
      return "removed";
    case LossReason::taken:
      return "taken";
    case LossReason::evicted:
      return "evicted";
    case LossReason::store_restarted:
      return "store_restarted";
    case LossReason::failover:
      return "failover";
    case LossReason::closed:
      return "closed";
    case LossReason::broken:
      return "broken";
    case LossReason::max_hold:
      return "max_hold";
    case LossReason::no_progress:
      return "no_progress";
    case LossReason::access_denied:
      return "access_denied";
    case LossReason::gate_not_confirmed:
      return "gate_not_confirmed";
  }
  return "unknown";
}

}  // namespace dlock::inline v0
