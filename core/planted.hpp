// SPDX-License-Identifier: Apache-2.0
//
// Planted defects: what the simulation must be able to find. DLOCK_PLANTED("name") is the constant
// false in every build but the simulation's own copy of the sources (tests/simulation), where one
// defect at a time can be switched on. They are listed in tests/simulation, */defects.hpp and
// core_defects.hpp.
#pragma once

#ifdef DLOCK_PLANTING

#include <string_view>

namespace dlock::core {

/// The defect that is in; empty: none. Set by the simulation before a run.
inline thread_local std::string_view planted_defect;

inline bool is_planted(std::string_view defect) noexcept { return planted_defect == defect; }

}  // namespace dlock::core

#define DLOCK_PLANTED(defect) (::dlock::core::is_planted(defect))

#else

#define DLOCK_PLANTED(defect) false

#endif
