// SPDX-License-Identifier: Apache-2.0
//
// What BoottimeClock::now() says in the simulation's copy of the core: what is not handed an Env
// asks it (MultiLock's one deadline). The clock of the process that runs; where none does, the real
// one. Under a sanitizer it is the real one always.
#pragma once

#include "dlock/spi/env.hpp"

namespace dlock::simulation {

/// The process whose code runs on this thread; null: none.
inline thread_local const Env* running_process = nullptr;

}  // namespace dlock::simulation
