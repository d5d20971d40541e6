// SPDX-License-Identifier: Apache-2.0
//
// All that is known of a soak when it is over, and what is to be said of it.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "testkit/checkers/history.hpp"
#include "tests/soak/guarded.hpp"
#include "tests/soak/log.hpp"

namespace dlock::soak {

/// From SIGSTOP to SIGCONT of a worker.
struct Stop {
  int worker = 0;
  TimePoint from;
  TimePoint to = kNever;
};

struct Struck {
  std::string kind;
  TimePoint from;
  TimePoint to;
};

struct Death {
  int worker = 0;
  TimePoint at;  ///< just before it was killed
};

struct Records {
  std::map<int, std::vector<Line>> lines;  ///< by worker
  std::map<std::string, std::vector<GuardedWrite>> writes;
  std::vector<Stop> stops;
  std::vector<Struck> struck;
  std::vector<Death> deaths;
  std::vector<Duration> progress;  ///< from each heal until every worker was granted something
  checkers::Violations seen;       ///< by the conductor itself
  TimePoint end;
};

struct Terms {
  bool exclusive = true;  ///< the store's own word
  bool has_lease = true;
  std::vector<std::string> excepted;
  std::chrono::milliseconds lease{0};
  std::chrono::milliseconds progress_bound{0};
};

struct Judgement {
  std::size_t acquisitions = 0;
  std::size_t extensions = 0;
  std::size_t writes = 0;
  std::size_t refused_writes = 0;
  std::map<std::string, std::size_t> faults;
  std::map<std::string, std::size_t> excepted;  ///< overlaps that the store's word leaves out
  std::size_t losses = 0;                       ///< told, all of them
  /// Told less deadline, sorted; of those whose process was not stopped.
  std::vector<Duration> lateness;
  /// The same without the time in which the machine did not run even a bare timer of that process.
  std::vector<Duration> own_lateness;
  Duration longest_progress{0};
  checkers::Violations violations;
};

/// The value that so large a share of the sorted ones does not exceed; 0 of none.
Duration quantile(const std::vector<Duration>& sorted, double share);
/// 99.9 % of the losses were told within `bound` of their deadline; of fewer than a thousand, all
/// but one.
bool told_in_time(const std::vector<Duration>& sorted, Duration bound);

Judgement judge(const Records& records, const Terms& terms);

}  // namespace dlock::soak
