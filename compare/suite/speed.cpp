// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/speed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>

#include "compare/suite/contention.hpp"
#include "compare/suite/machine.hpp"
#include "compare/suite/peers.hpp"
#include "compare/suite/scenario.hpp"
#include "compare/suite/worker_process.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;
using boost::json::value;

constexpr auto kPatience = std::chrono::seconds(60);

/// One measurement: of a scenario, with a driver, at one value of its parameter.
struct Case {
  Context& context;
  Store& store;
  const object& scenario;
  DriverProgram driver;
  std::int64_t param;
  int repeat;
  std::chrono::milliseconds duration;

  object job(const char* program) const {
    return {{"program", program},
            {"driver", driver.name},
            {"url", store.url()},
            {"lock", fmt::format("dlock-compare/{}-{}-{}", driver.name, param, repeat)},
            {"duration_ms", duration.count()}};
  }
};

const value& at_depth(const object& scenario, const char* name, Depth depth) {
  return scenario.at(name).at(to_string(depth));
}

std::chrono::milliseconds duration_of(const object& scenario, Depth depth) {
  if (!scenario.contains("duration_ms")) return std::chrono::milliseconds(600);
  return std::chrono::milliseconds(
      at_depth(scenario, "duration_ms", depth).to_number<std::int64_t>());
}

int repeats(Depth depth) { return depth == Depth::full ? 5 : depth == Depth::standard ? 3 : 1; }

/// What hardly differs between repeats says how many are enough.
int repeats_of(const object& scenario, Depth depth) {
  const auto* most = scenario.if_contains("most_repeats");
  return most == nullptr ? repeats(depth) : std::min(repeats(depth), most->to_number<int>());
}

double number(const object& result, const char* name) {
  return result.at(name).to_number<double>();
}

object measure_pairs(const Case& one) {
  auto job = one.job("pairs");
  job["clients"] = one.param;
  auto result = run_worker(one.context, job, one.driver.command);
  const double pairs = std::max(1.0, number(result, "pairs"));
  const auto& pair = result.at("pair").as_object();
  const auto& acquire = result.at("acquire").as_object();
  const object values{{"pair_p50_us", pair.at("p50_us")},
                      {"pair_p99_us", pair.at("p99_us")},
                      {"acquire_p50_us", acquire.at("p50_us")},
                      {"pairs_per_s", pairs / number(result, "seconds")},
                      {"cpu_us_per_pair", number(result, "cpu_seconds") * 1e6 / pairs}};
  return {{"values", values}, {"pair", pair}, {"acquire", acquire}};
}

object measure_open(const Case& one) {
  auto job = one.job("open");
  job["rate"] = one.param;
  auto result = run_worker(one.context, job, one.driver.command);
  const auto& acquire = result.at("acquire").as_object();
  const object values{{"acquire_p50_us", acquire.at("p50_us")},
                      {"acquire_p99_us", acquire.at("p99_us")},
                      {"acquire_max_us", acquire.at("max_us")}};
  return {{"values", values}, {"acquire", acquire}};
}

/// Clients of several processes: within one, a library could pass the lock on by itself.
object measure_contend(const Case& one) {
  const std::int64_t processes = std::min<std::int64_t>(4, one.param);
  const std::int64_t most = 100'000 / one.param;
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::int64_t i = 0; i < processes; ++i) {
    auto job = one.job("contend");
    job["max_turns"] = most;
    job["clients"] = one.param / processes + (i < one.param % processes ? 1 : 0);
    workers.push_back(std::make_unique<Worker>(one.context, job, one.driver.command));
  }
  for (auto& worker : workers) worker->await("ready", testkit::within(kPatience));
  for (auto& worker : workers) worker->command("go");
  std::vector<Turn> turns;
  std::int64_t process = 0;
  for (auto& worker : workers) {
    const auto result = worker->await("result", testkit::within(kPatience));
    for (const auto& row : result.at("grants").as_array()) {
      const auto field = [&](std::size_t i) { return row.at(i).to_number<std::int64_t>(); };
      turns.push_back({process * 1000 + field(0), field(1), field(2), field(3)});
    }
    ++process;
  }
  auto judged =
      judge_turns(until_the_first_stopped(std::move(turns), static_cast<std::size_t>(most)),
                  static_cast<std::size_t>(one.param));
  const auto overlaps = judged.at("overlaps").to_number<std::int64_t>();
  if (overlaps > 0 && one.driver.name == "dlock") {
    // Nothing was broken here: no store may do that.
    judged["contradictions"] = boost::json::array{boost::json::string(
        fmt::format("{} grant(s) came before the holder began to give the lock back", overlaps))};
  }
  return judged;
}

object measure_cost(const Case& one) {
  if (one.store.port() == 0) return {};
  testkit::FaultProxy proxy(one.store.port());
  auto job = one.job("pairs");
  job["url"] = one.store.url_through(proxy.port());
  job["count"] = one.param;
  Worker worker(one.context, job, one.driver.command);
  worker.await("ready", testkit::within(kPatience));
  const auto operations = one.store.operations();
  const auto before = proxy.stats();
  worker.command("go");
  worker.await("result", testkit::within(kPatience));
  const auto after = proxy.stats();
  const auto count = static_cast<double>(one.param);
  const auto each = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - from) / count;
  };
  object values{{"round_trips", each(before.turns, after.turns)},
                {"bytes_to_server", each(before.to_server.bytes, after.to_server.bytes)},
                {"bytes_to_client", each(before.to_client.bytes, after.to_client.bytes)}};
  if (operations) {
    values["operations"] = each(*operations, one.store.operations().value_or(*operations));
  }
  return {{"values", values}};
}

/// A lease so short that renewals fall into the time that is looked at; no other option of the URL.
std::string with_short_lease(const Store& store) {
  auto url = store.url();
  if (store.kind().family == "local" || store.faults().empty()) return url;  // or the user's own
  const char* option = store.kind().family == "zookeeper" ? "session_timeout" : "lease";
  return fmt::format("{}?{}=3s", url.substr(0, url.find('?')), option);
}

double server_cpu(const Store& store) {
  double all = 0;
  for (const int pid : store.pids()) all += figures_of(pid).value_or(ProcessFigures{}).cpu_seconds;
  return all;
}

object measure_crowd(const Case& one) {
  auto job = one.job("crowd");
  job["of"] = one.scenario.at("of");
  job["count"] = one.param;
  job["url"] = with_short_lease(one.store);
  Worker worker(one.context, job, one.driver.command);
  worker.await("ready", testkit::within(kPatience));
  const int pid = worker.process().pid();
  const auto alone = figures_of(pid).value_or(ProcessFigures{});
  worker.command("go");
  worker.await("there", testkit::within(kPatience));
  one.context.interrupt.sleep(std::chrono::milliseconds(300));
  const auto begin = figures_of(pid).value_or(ProcessFigures{});
  const double server_begin = server_cpu(one.store);
  const auto start = testkit::Clock::now();
  one.context.interrupt.sleep(one.duration);
  const auto end = figures_of(pid).value_or(ProcessFigures{});
  const double server_end = server_cpu(one.store);
  const double seconds = std::chrono::duration<double>(testkit::Clock::now() - start).count();
  const double scale = 1000.0 / static_cast<double>(one.param);
  object values{{"memory_mb", std::max(0.0, end.memory_mb - alone.memory_mb) * scale},
                {"threads", std::max(0.0, end.threads - alone.threads) * scale + alone.threads},
                {"cpu_percent", (end.cpu_seconds - begin.cpu_seconds) / seconds * 100 * scale}};
  if (!one.store.pids().empty()) {
    values["server_cpu_percent"] = (server_end - server_begin) / seconds * 100 * scale;
  }
  worker.command("stop");
  worker.await("result", testkit::within(kPatience));
  return {{"values", values}};
}

object measure(const Case& one) {
  static const std::map<std::string_view, std::function<object(const Case&)>> measures{
      {"pairs", &measure_pairs}, {"open", &measure_open},   {"contend", &measure_contend},
      {"cost", &measure_cost},   {"crowd", &measure_crowd},
  };
  return measures.at(one.scenario.at("measure").as_string())(one);
}

void record(const Case& one) {
  object result;
  try {
    result = measure(one);
    if (result.empty()) return;  // nothing to measure here
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    result["failed"] = error.what();
  }
  result["kind"] = "speed";
  result["scenario"] = one.scenario.at("id");
  result["store"] = one.store.kind().id;
  result["driver"] = one.driver.name;
  result["param"] = one.param;
  result["repeat"] = one.repeat;
  result["load"] = load_average();
  one.context.add(std::move(result));
}

/// Peers take long to start: they are measured where `peers_at` says, or everywhere.
bool peers_are_measured(const object& scenario, const value& param) {
  const auto* at = scenario.if_contains("peers_at");
  if (at == nullptr) return true;
  const auto& params = at->as_array();
  return std::find(params.begin(), params.end(), param) != params.end();
}

/// A quick run leaves out stores whose clients are the same as another's.
bool is_left_out(const object& scenario, const std::string& store, Depth depth) {
  const auto* without = scenario.if_contains("quick_without");
  if (without == nullptr || depth != Depth::quick) return false;
  const auto& ids = without->as_array();
  return std::any_of(ids.begin(), ids.end(),
                     [&](const auto& id) { return id.as_string() == store; });
}

}  // namespace

double plan_speed(const Options& options, std::size_t stores) {
  double seconds = 0;
  for (const auto& entry : scenarios("speed")) {
    const auto& scenario = entry.as_object();
    if (!is_wanted(options, scenario.at("id").as_string())) continue;
    const double one =
        0.3 + std::chrono::duration<double>(duration_of(scenario, options.depth)).count();
    seconds += one * 2 * repeats_of(scenario, options.depth) *
               static_cast<double>(at_depth(scenario, "params", options.depth).as_array().size());
  }
  return seconds * static_cast<double>(stores);
}

// The repeats are far apart: what else the machine does for some seconds spoils one of them, not
// all.
void run_speed(Context& context, Store& store) {
  const auto depth = context.options.depth;
  for (int repeat = 0; repeat < repeats(depth); ++repeat) {
    for (const auto& entry : scenarios("speed")) {
      const auto& scenario = entry.as_object();
      if (!is_wanted(context.options, scenario.at("id").as_string())) continue;
      if (repeat >= repeats_of(scenario, depth)) continue;
      if (is_left_out(scenario, store.kind().id, depth)) continue;
      context.progress.begin(
          fmt::format("{}: {}", store.kind().title, scenario.at("title").as_string().c_str()));
      const auto duration = duration_of(scenario, depth);
      const auto drivers = drivers_for(context, store, scenario.at("measure").as_string());
      for (const auto& param : at_depth(scenario, "params", depth).as_array()) {
        for (const auto& driver : drivers) {
          if (!driver.command.empty() && !peers_are_measured(scenario, param)) continue;
          record({context, store, scenario, driver, param.to_number<std::int64_t>(), repeat,
                  duration});
        }
        context.progress.done(2 * (0.3 + std::chrono::duration<double>(duration).count()));
      }
    }
  }
}

}  // namespace dlock::compare
