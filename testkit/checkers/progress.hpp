// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "testkit/checkers/history.hpp"

namespace dlock::checkers {

/// While nothing is broken, each name that somebody wants is granted to somebody within `bound`,
/// counted from the heal or from the moment it was wanted and free, whichever is later. A name that
/// is held and not given back does not count against the store; that of a holder that died does, so
/// `bound` has to cover the lease. `end` is when the run ended: what could not have happened by
/// then is not missed.
Violations check_progress(const History& history, Duration bound, TimePoint end);

}  // namespace dlock::checkers
