// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/speed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "compare/suite/machine.hpp"
#include "compare/suite/measurement.hpp"
#include "compare/suite/peers.hpp"
#include "compare/suite/samples.hpp"
#include "compare/suite/scenario.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;
using boost::json::value;

const value& at_depth(const object& scenario, const char* name, Depth depth) {
  return scenario.at(name).at(to_string(depth));
}

std::chrono::milliseconds duration_of(const object& scenario, Depth depth) {
  if (!scenario.contains("duration_ms")) return std::chrono::milliseconds(600);
  return std::chrono::milliseconds(
      at_depth(scenario, "duration_ms", depth).to_number<std::int64_t>());
}

/// What hardly differs between repeats says how many are enough.
int repeats_of(const object& scenario, Depth depth) {
  const int all = samples_of(depth).repeats;
  const auto* most = scenario.if_contains("most_repeats");
  return most == nullptr ? all : std::min(all, most->to_number<int>());
}

void record(const Case& one, int repeat, object result) {
  if (result.empty()) return;
  result["kind"] = "speed";
  result["scenario"] = one.scenario.at("id");
  result["store"] = one.store.kind().id;
  result["driver"] = one.driver.name;
  result["param"] = one.param;
  result["repeat"] = repeat;
  result["round"] = one.repeat;
  result["load"] = load_average();
  one.context.add(std::move(result));
}

/// One driver of a comparison. When it has failed it is left out of the rest: dlock at once, which
/// has to get over whatever happens; others, which end where their session does, the second time.
struct Contestant {
  Case one;
  std::unique_ptr<Measurement> measurement;

  void begin(int repeat) {
    attempt(repeat, [&] { measurement = make_measurement(one); });
  }
  void slice(int repeat) {
    const auto take = [&] { record(one, repeat, measurement->slice()); };
    if (!attempt(repeat, take) && measurement) attempt(repeat, take);
  }

 private:
  /// Whether it was done. If not, it has begun anew, or is left out.
  template <class Work>
  bool attempt(int repeat, Work&& work) {
    try {
      work();
      return true;
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      measurement.reset();
      if (!one.driver.is_ours() && one.begun_anew == 0) {
        ++one.begun_anew;
        begin(repeat);
      } else {
        record(one, repeat, {{"failed", error.what()}});
      }
    }
    return false;
  }
};

/// Every driver in turn, slice by slice, there and back: a drift strikes all alike.
void compare(std::vector<Contestant> contestants, int slices) {
  const int first = contestants.front().one.repeat * slices;
  for (auto& it : contestants) {
    it.begin(first);
  }
  for (int slice = 0; slice < slices; ++slice) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      auto& it = contestants[slice % 2 == 0 ? i : contestants.size() - 1 - i];
      if (!it.measurement) continue;
      it.slice(first + slice);
    }
  }
}

/// Of what is measured in slices, how many a repeat has.
int slices_of(const object& scenario, Depth depth) {
  const auto& measure = scenario.at("measure").as_string();
  const bool sliced = measure != "cost" && measure != "crowd";
  return sliced ? samples_of(depth).slices : 1;
}

/// Peers take long to start: they are measured where `peers_at` says, or everywhere.
bool peers_are_measured(const object& scenario, const value& param) {
  const auto* at = scenario.if_contains("peers_at");
  if (at == nullptr) return true;
  const auto& params = at->as_array();
  return std::find(params.begin(), params.end(), param) != params.end();
}

/// In seconds, of one repeat.
double planned_seconds_of(const object& scenario, Depth depth) {
  const double one = 0.3 + std::chrono::duration<double>(duration_of(scenario, depth)).count();
  return one * 2 * static_cast<double>(at_depth(scenario, "params", depth).as_array().size());
}

/// What it measures is there.
bool is_there(const object& scenario, const object& declared) {
  const auto* needs = scenario.if_contains("needs");
  if (needs == nullptr) return true;
  const auto* has = declared.if_contains(needs->as_string());
  return has != nullptr && *has == true;
}

}  // namespace

double plan_speed(const Options& options, std::size_t stores) {
  double seconds = 0;
  for (const auto& entry : scenarios("speed")) {
    const auto& scenario = entry.as_object();
    if (!is_wanted(options, scenario)) continue;
    seconds += planned_seconds_of(scenario, options.depth) * repeats_of(scenario, options.depth);
  }
  return seconds * static_cast<double>(stores);
}

// The repeats are far apart: what else the machine does for some seconds spoils one of them, not
// all.
void run_speed(Context& context, Store& store, const object& declared) {
  const auto depth = context.options.depth;
  for (int repeat = 0; repeat < samples_of(depth).repeats; ++repeat) {
    for (const auto& entry : scenarios("speed")) {
      const auto& scenario = entry.as_object();
      if (!is_wanted(context.options, scenario)) continue;
      if (repeat >= repeats_of(scenario, depth)) continue;
      if (!is_there(scenario, declared)) {
        context.progress.done(planned_seconds_of(scenario, depth));
        continue;
      }
      context.progress.begin(
          fmt::format("{}: {}", store.kind().title, scenario.at("title").as_string().c_str()));
      const auto duration = duration_of(scenario, depth);
      const int slices = slices_of(scenario, depth);
      const auto drivers = drivers_for(context, store, scenario);
      for (const auto& param : at_depth(scenario, "params", depth).as_array()) {
        std::vector<Contestant> contestants;
        for (const auto& driver : drivers) {
          if (driver.is_further() && !peers_are_measured(scenario, param)) continue;
          contestants.push_back({{context, store, scenario, driver, param.to_number<std::int64_t>(),
                                  repeat, duration / slices},
                                 nullptr});
        }
        compare(std::move(contestants), slices);
        context.progress.done(2 * (0.3 + std::chrono::duration<double>(duration).count()));
      }
    }
  }
}

}  // namespace dlock::compare
