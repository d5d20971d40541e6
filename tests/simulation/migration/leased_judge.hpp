// SPDX-License-Identifier: Apache-2.0
//
// What a run with a leased gate must have kept, by the record of an observer. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "testkit/checkers/history.hpp"

namespace dlock::simulation::migration {

struct LeasedFacts {
  struct Grant {
    std::string process;
    bool is_source_shown = true;
    bool is_legacy = false;
    bool takes_part = true;
  };
  /// The source forgets everything.
  struct Wipe {
    TimePoint at;
    std::map<std::string, std::string> holders;  ///< processes by the lock that they held
  };
  std::map<checkers::GrantId, Grant> grants;
  std::vector<Wipe> wipes;
};

/// One holder at most. After a wipe of the source, another may hold beside the forgotten one, until
/// that has learned of it: for one lease.
checkers::Violations check_leased_holders(const checkers::History& history,
                                          const LeasedFacts& facts, Duration lease);

/// Each token is above all that were shown for its lock before. Clients that know the source alone
/// are left out. A wipe of the source separates its own tokens before and after, not those of the
/// target.
checkers::Violations check_leased_tokens(const checkers::History& history, const LeasedFacts& facts,
                                         Duration lease);

}  // namespace dlock::simulation::migration
