// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dlock::core::migration {

/// Where a command brings the locks of a plan.
enum class Goal {
  advance,   ///< into the target: forward, or abort a rollback
  rollback,  ///< back into the source
  finish,    ///< for good
};

}  // namespace dlock::core::migration
