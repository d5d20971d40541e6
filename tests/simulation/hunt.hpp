// SPDX-License-Identifier: Apache-2.0
//
// Many runs on all cores, their sum, and the hunt for planted defects.
#pragma once

#include <functional>
#include <optional>

#include "tests/simulation/defects.hpp"
#include "tests/simulation/run.hpp"

namespace dlock::simulation {

struct Campaign {
  const Kind* kind = nullptr;
  Way way = {};
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 1000;
  std::string_view defect = {};
  int jobs = 1;
  /// Stop at the first run with a violation.
  bool until_found = false;
};

struct Sum {
  std::uint64_t runs = 0;
  std::uint64_t acquisitions = 0;
  std::uint64_t contended = 0;
  std::uint64_t adoptions = 0;
  Duration simulated{};
  FaultTable faults;
  std::map<Fault, std::uint64_t> doubles;
  std::vector<Duration> lateness;
  /// The lowest seed with a violation, and what it was.
  std::optional<std::uint64_t> bad_seed;
  std::uint64_t bad_runs = 0;
  checkers::Violations violations;
};

/// `progress` is told now and then how many seeds are done.
Sum campaign(const Campaign& what, const std::function<void(std::uint64_t)>& progress = {});

}  // namespace dlock::simulation
