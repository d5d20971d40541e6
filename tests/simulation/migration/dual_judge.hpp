// SPDX-License-Identifier: Apache-2.0
//
// What a run in mode dual must have kept, by what an observer wrote down. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "testkit/checkers/history.hpp"

namespace dlock::simulation::migration {

/// What a program locks: its phase, or all that it knows of the two stores.
enum class Sort { legacy, source, both, target, target_only };

const char* to_string(Sort sort) noexcept;
/// -1: it takes no part in the plan.
int phase_of(Sort sort) noexcept;
bool locks_source(Sort sort) noexcept;
bool locks_target(Sort sort) noexcept;

struct DualFacts {
  struct Grant {
    Sort sort = Sort::source;
    std::string process;
  };
  struct Wipe {
    TimePoint at;
    std::map<std::string, std::string> holders;  ///< processes by the lock that they held
  };
  struct Opening {
    TimePoint at;
    std::uint64_t floor = 0;
  };
  std::map<checkers::GrantId, Grant> grants;
  std::vector<Wipe> wipes;                ///< of the source
  std::vector<Opening> openings_of_zero;  ///< and the beginning
};

/// One holder at most; where the source was wiped, it may have another of its own beside the one
/// that it has forgotten, for one lease. And never one of the source alone beside one of the target
/// alone, whatever they hold.
checkers::Violations check_holders(const checkers::History& history, const DualFacts& facts,
                                   Duration lease);

/// Each token is above all that were shown for its lock before. Legacy clients are outside of it; a
/// wipe of the source parts its own tokens before and after, never those of the target.
checkers::Violations check_shown_tokens(const checkers::History& history, const DualFacts& facts,
                                        Duration lease);

}  // namespace dlock::simulation::migration
