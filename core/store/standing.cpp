// SPDX-License-Identifier: Apache-2.0
#include "core/store/standing.hpp"

#include <fmt/format.h>

namespace dlock::core {

StandingReport standing_of(const Sequencer& sequencer, const LockStatus& status) {
  StandingReport report;
  // A lease that is over may still keep others out (lock_delay); its holder holds no more.
  const bool over = status.remaining && status.remaining->count() <= 0;
  if (!status.held || over) {
    report.standing = Standing::not_held;
    return report;
  }
  report.present_token = status.token;
  report.standing = status.token == sequencer.token() ? Standing::current : Standing::superseded;
  if (!status.token) {
    report.message = "held by a client that has no tokens";
  } else if (*status.token < sequencer.token()) {
    report.message = fmt::format(
        "the present grant has the lower token {}: the store has lost what it knew", *status.token);
  }
  return report;
}

}  // namespace dlock::core
