// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testkit/checkers/history.hpp"

namespace dlock::checkers {

/// A candidate has said that it leads, in term `token`: between these two moments it surely did.
/// The first is when the first such answer was there, the last when the last was asked for.
struct Lead {
  std::string candidate;
  std::uint64_t token = 0;
  TimePoint from;
  TimePoint until;
};

/// At no moment do two candidates lead, and no two terms have one token.
Violations check_leaders(const std::vector<Lead>& leads);

}  // namespace dlock::checkers
