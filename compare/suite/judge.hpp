// SPDX-License-Identifier: Apache-2.0
//
// What the history of a safety scenario means: figures, and what contradicts the store's word.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "testkit/checkers/history.hpp"

namespace dlock::compare {

/// A write as the guarded resource got it; token 0: none.
struct Arrival {
  TimePoint at;
  checkers::GrantId grant = 0;
  std::uint64_t token = 0;
};

struct Outcome {
  checkers::History history;  ///< in any order
  std::vector<Arrival> writes;
  std::vector<std::string> missed;  ///< what the scenario waited for in vain
};

/// Sorts the history by time. {"values": {...}, "findings": {...}}
boost::json::object judge(Outcome& outcome);

/// What of it contradicts the declared capabilities (as run_inspect says them), in sentences.
std::vector<std::string> contradictions(Outcome& outcome, const boost::json::object& judged,
                                        const boost::json::object& declared);

}  // namespace dlock::compare
