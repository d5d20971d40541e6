// SPDX-License-Identifier: Apache-2.0
//
// A backend outside dlock's own tree: locks in an SQLite file, for the processes of one machine.
//
//   auto locks = dlock::LockManager::open("sqlite:///var/lib/app/locks.db?lease=10s",
//                                         {.backends = {&sqlite_locks::backend()}});
#pragma once

#include "dlock/spi/descriptor.hpp"

namespace sqlite_locks {

const dlock::BackendDescriptor& backend();

}  // namespace sqlite_locks
