// SPDX-License-Identifier: Apache-2.0
//
// Computes the state of a grant from the store's status of its lock. Pure.
#pragma once

#include "dlock/lock_status.hpp"
#include "dlock/sequencer.hpp"

namespace dlock::core {

StandingReport standing_of(const Sequencer& sequencer, const LockStatus& status);

}  // namespace dlock::core
