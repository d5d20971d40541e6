// SPDX-License-Identifier: Apache-2.0
//
// Programs that lock what a plan moves and do not take part in it.
#pragma once

#include <string>

#include "dlock/lock_status.hpp"

namespace dlock::core::migration {

/// A client that holds a lock of a plan, or waits for it, without the plan's route.
struct Stranger {
  std::string store;
  std::string lock;
  Owner owner;
  bool waits = false;  ///< does not hold it
};

}  // namespace dlock::core::migration
