// SPDX-License-Identifier: Apache-2.0
//
// Planted defects: what the simulation must be able to find. They are edits of the sources
// (*/defects/*.edit, testkit/edits.py), made in the simulation's own copy, or mistakes of the
// simulated servers; one at a time is switched on.
#pragma once

#include <string_view>

namespace dlock::simulation {

/// The defect that is in; empty: none. Set by the simulation before a run.
inline thread_local std::string_view planted_defect;

inline bool is_planted(std::string_view defect) noexcept { return planted_defect == defect; }

}  // namespace dlock::simulation
