// SPDX-License-Identifier: Apache-2.0
//
// What else the machine did while it was measured: load, time stolen by the hypervisor, processors
// used by processes that are none of ours.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace dlock::compare {

/// Of all processors together, in seconds since some moment.
struct CpuTimes {
  double all = 0;    ///< with what was idle and stolen
  double used = 0;   ///< by processes, anybody's
  double steal = 0;  ///< by the hypervisor, for others
  double own = 0;    ///< by this process and all that it started
};

/// Out of the text of /proc/stat, without `own`; nullopt if it is none.
std::optional<CpuTimes> parse_cpu_times(std::string_view stat, double ticks_per_second);
/// As it is now; nullopt where there is no /proc.
std::optional<CpuTimes> cpu_times();

/// {"others_percent", "steal_percent"} of all processors between two moments.
boost::json::object shares(const CpuTimes& from, const CpuTimes& to);

/// Why figures of this machine are to be doubted, in sentences for people; empty: it was quiet, or
/// nobody knows. `machine` is that of raw.json; what is not in it yet is not judged.
std::vector<std::string> reasons_to_doubt(const boost::json::object& machine);

/// Looks every five seconds, on a thread of its own, until it is destroyed.
class BusyWatch {
 public:
  BusyWatch();

  /// {"others_percent", "steal_percent", "worst_others_percent", "worst_steal_percent",
  ///  "seconds", "looks": [[seconds, others, steal, load average], ...]}; empty where there is no
  /// /proc. Any thread.
  boost::json::object so_far();

 private:
  void look();

  std::mutex mutex_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<CpuTimes> first_;
  std::optional<CpuTimes> last_;
  std::chrono::steady_clock::time_point looked_ = start_;
  boost::json::array looks_;
  std::jthread thread_;  // the last: it uses the others
};

}  // namespace dlock::compare
