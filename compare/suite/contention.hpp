// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <vector>

namespace dlock::compare {

/// One grant of a lock that all want; times in nanoseconds on one clock.
struct Turn {
  std::int64_t client = 0;
  std::int64_t asked = 0;
  std::int64_t got = 0;
  std::int64_t gave = 0;
  bool reads = false;  ///< beside others that do
};

/// Without what came after the first client had its `most` turns and stopped: the others went on
/// among themselves.
std::vector<Turn> until_the_first_stopped(std::vector<Turn> turns, std::size_t most);

/// The figures of a contention: hand-over, fairness, order; `handover` as histogram; `overlaps`:
/// grants that came before the one before was given back.
boost::json::object judge_turns(std::vector<Turn> turns, std::size_t clients);

/// The figures of what is shared, by `permits` at a time; 0: readers together, a writer alone.
/// `read`, `write` and `acquire` are histograms of the waits; `broken` says what grants broke that.
boost::json::object judge_sharing(std::vector<Turn> turns, std::uint64_t permits);

}  // namespace dlock::compare
