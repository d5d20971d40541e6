// SPDX-License-Identifier: Apache-2.0
#include "core/store/standing.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::core {

namespace {

/// The report for a grant among several readers.
StandingReport standing_among(const Sequencer& sequencer, const LockStatus& status) {
  StandingReport report;
  report.present_token = status.token;
  const bool is_there =
      std::any_of(status.readers.begin(), status.readers.end(), [&](const SharedHolder& reader) {
        const bool over = reader.remaining && reader.remaining->count() <= 0;
        return !over && reader.token == sequencer.token();
      });
  // A writer that has stepped down has its token still, but is none any more.
  const bool same = is_there && sequencer.mode() == Mode::shared;
  report.standing = same ? Standing::current : Standing::superseded;
  return report;
}

}  // namespace

StandingReport standing_of(const Sequencer& sequencer, const LockStatus& status) {
  if (status.held && status.mode == Mode::shared) return standing_among(sequencer, status);
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
