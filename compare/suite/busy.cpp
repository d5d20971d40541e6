// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/busy.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>

#include "compare/suite/machine.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;

constexpr std::chrono::seconds kPeriod{5};
/// A look at less than this says too little: the kernel counts in ticks.
constexpr double kShortestLook = 1;

// Beyond these, figures are to be doubted. In percent of all processors; half a core's worth of
// runnable processes for each core that there is.
constexpr double kMostLoadPerCore = 0.5;
constexpr double kMostOthers = 10, kMostOthersOnce = 30;
constexpr double kMostSteal = 2, kMostStealOnce = 10;

double ticks_per_second() { return static_cast<double>(::sysconf(_SC_CLK_TCK)); }

double seconds_of(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double own_seconds(int who) {
  rusage usage{};
  return ::getrusage(who, &usage) == 0 ? seconds_of(usage) : 0;
}

struct ProcessTimes {
  int parent = 0;
  double seconds = 0;  ///< its own, and that of children which it has waited for
};

std::optional<ProcessTimes> times_of(const std::filesystem::path& folder) {
  const auto stat = content_of(folder / "stat");
  const auto name_end = stat.rfind(')');  // a name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream in(stat.substr(name_end + 1));
  const std::vector<std::string> fields{std::istream_iterator<std::string>(in), {}};
  if (fields.size() < 15) return std::nullopt;
  double ticks = 0;
  for (std::size_t i = 11; i < 15; ++i) ticks += std::strtod(fields[i].c_str(), nullptr);
  return ProcessTimes{std::atoi(fields[1].c_str()), ticks / ticks_per_second()};
}

/// Of those processes below us that are there, dead or alive, as long as nobody has waited for
/// them.
double descendants_seconds() {
  std::map<int, ProcessTimes> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    if (const auto times = times_of(entry.path())) all[pid] = *times;
  }
  const int self = ::getpid();
  double sum = 0;
  for (const auto& [pid, times] : all) {
    auto above = times.parent;
    for (int depth = 0; depth < 64 && above != self && all.contains(above); ++depth) {
      above = all.at(above).parent;
    }
    if (above == self && pid != self) sum += times.seconds;
  }
  return sum;
}

/// A child that is waited for between the two looks would be counted twice or not at all.
double own_seconds_with_children() {
  double children = own_seconds(RUSAGE_CHILDREN);
  double living = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    living = descendants_seconds();
    const double again = own_seconds(RUSAGE_CHILDREN);
    if (again == children) break;
    children = again;
  }
  return own_seconds(RUSAGE_SELF) + children + living;
}

double known_or_zero(const object& from, const char* field) {
  const auto* value = from.if_contains(field);
  return value == nullptr ? 0 : value->to_number<double>();
}

void add_excess(std::vector<std::string>& reasons, const object& busy, const std::string& of,
                double most, double most_once, const char* what) {
  const double mean = known_or_zero(busy, (of + "_percent").c_str());
  const double worst = known_or_zero(busy, ("worst_" + of + "_percent").c_str());
  if (mean <= most && worst <= most_once) return;
  reasons.push_back(fmt::format("{} took {:.0f} % of all processors, {:.0f} % at the worst", what,
                                mean, std::max(mean, worst)));
}

}  // namespace

std::optional<CpuTimes> parse_cpu_times(std::string_view stat, double ticks) {
  if (!stat.starts_with("cpu ")) return std::nullopt;
  std::istringstream in(std::string(stat.substr(4, stat.find('\n') - 4)));
  // user nice system idle iowait irq softirq steal; what guests used is in `user` already.
  std::array<double, 8> times{};
  for (auto& time : times) {
    if (!(in >> time)) return std::nullopt;
  }
  CpuTimes result;
  for (const double time : times) result.all += time / ticks;
  // Interrupts are nobody's: some kernels charge them to whom they interrupt, and some do not.
  result.used = (times[0] + times[1] + times[2]) / ticks;
  result.steal = times[7] / ticks;
  return result;
}

std::optional<CpuTimes> cpu_times() {
  auto times = parse_cpu_times(content_of("/proc/stat"), ticks_per_second());
  if (times) times->own = own_seconds_with_children();
  return times;
}

object shares(const CpuTimes& from, const CpuTimes& to) {
  const double all = std::max(to.all - from.all, 1e-9);
  const double others = (to.used - from.used) - (to.own - from.own);
  const auto percent = [&](double seconds) { return std::clamp(seconds / all * 100, 0.0, 100.0); };
  return {{"others_percent", percent(others)}, {"steal_percent", percent(to.steal - from.steal)}};
}

std::vector<std::string> reasons_to_doubt(const object& machine) {
  std::vector<std::string> reasons;
  const double cores = std::max(1.0, known_or_zero(machine, "cores"));
  const double load = known_or_zero(machine, "load_before");
  if (load > kMostLoadPerCore * cores) {
    reasons.push_back(
        fmt::format("the load average was {:.2f} on {:.0f} core(s) at the start", load, cores));
  }
  if (const auto* busy = machine.if_contains("busy")) {
    const auto& found = busy->as_object();
    add_excess(reasons, found, "others", kMostOthers, kMostOthersOnce, "other processes");
    add_excess(reasons, found, "steal", kMostSteal, kMostStealOnce,
               "other virtual machines on the same host (steal)");
  }
  return reasons;
}

BusyWatch::BusyWatch() : first_(cpu_times()), last_(first_) {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    while (!never.wait_for(lock, stop, kPeriod, [&] { return stop.stop_requested(); })) look();
  });
}

void BusyWatch::look() {
  const auto now = cpu_times();
  const std::scoped_lock guard(mutex_);
  if (!now || !last_) return;
  const auto moment = std::chrono::steady_clock::now();
  if (std::chrono::duration<double>(moment - looked_).count() < kShortestLook) return;
  const auto found = shares(*last_, *now);
  const double seconds = std::chrono::duration<double>(moment - start_).count();
  looks_.push_back(boost::json::array{seconds, found.at("others_percent"),
                                      found.at("steal_percent"), load_average()});
  last_ = now;
  looked_ = moment;
}

object BusyWatch::so_far() {
  look();
  const std::scoped_lock guard(mutex_);
  if (!first_ || !last_ || looks_.empty()) return {};
  object found = shares(*first_, *last_);
  double others = 0, steal = 0;
  for (const auto& look : looks_) {
    others = std::max(others, look.at(1).as_double());
    steal = std::max(steal, look.at(2).as_double());
  }
  found["worst_others_percent"] = others;
  found["worst_steal_percent"] = steal;
  found["seconds"] = std::chrono::duration<double>(looked_ - start_).count();
  found["looks"] = looks_;
  return found;
}

}  // namespace dlock::compare
