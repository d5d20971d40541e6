// SPDX-License-Identifier: Apache-2.0
//
// From what a store says of a lock to how one of its grants stands. Pure.
#pragma once

#include "dlock/lock_status.hpp"
#include "dlock/sequencer.hpp"

namespace dlock::core {

StandingReport standing_of(const Sequencer& sequencer, const LockStatus& status);

}  // namespace dlock::core
