// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "testkit/checkers/history.hpp"

namespace dlock::checkers {

/// Permits of each name that are believed to be held at once are never above `limit`: looked at
/// whenever some are granted. That none is missing afterwards is check_progress()'s, where somebody
/// wants all of them. A history that makes no sense is a violation, too.
Violations check_permits(const History& history, std::uint64_t limit);

}  // namespace dlock::checkers
