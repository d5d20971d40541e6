// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "compare/suite/contention.hpp"
#include "compare/suite/machine.hpp"
#include "compare/suite/worker_process.hpp"
#include "testkit/fault_proxy.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;

double field(const object& result, const char* name) { return result.at(name).to_number<double>(); }

class Pairs final : public Measurement {
 public:
  explicit Pairs(const Case& one) : worker_(one.context, job_of(one), one.driver.command) {
    worker_.await("ready", testkit::within(kWorkerPatience));
  }
  object slice() override {
    worker_.command("go");
    const auto result = worker_.await("result", testkit::within(kWorkerPatience));
    return {{"values", values_of_pairs(result)},
            {"pair", result.at("pair")},
            {"acquire", result.at("acquire")}};
  }

 private:
  static object job_of(const Case& one) {
    const bool as_tasks = one.scenario.at("measure") == "tasks";
    auto job = one.job(as_tasks && one.driver.is_ours() ? "tasks" : "pairs");
    const bool as_threads = as_tasks && one.driver.name == "floor";
    job["clients"] = as_threads ? std::min(one.param, kFloorThreads) : one.param;
    return job;
  }
  /// Beside tasks. More connections, each with a thread, are not faster.
  static constexpr std::int64_t kFloorThreads = 16;
  Worker worker_;
};

class Open final : public Measurement {
 public:
  explicit Open(const Case& one) : worker_(one.context, job_of(one), one.driver.command) {
    worker_.await("ready", testkit::within(kWorkerPatience));
  }
  object slice() override {
    worker_.command("go");
    const auto result = worker_.await("result", testkit::within(kWorkerPatience));
    const auto& acquire = result.at("acquire").as_object();
    const object values{{"acquire_p50_us", acquire.at("p50_us")},
                        {"acquire_p99_us", acquire.at("p99_us")},
                        {"acquire_max_us", acquire.at("max_us")}};
    return {{"values", values}, {"acquire", acquire}};
  }

 private:
  static object job_of(const Case& one) {
    auto job = one.job("open");
    job["rate"] = one.param;
    return job;
  }
  Worker worker_;
};

/// Clients of several processes: within one, a library could pass the lock on by itself.
class Crew {
 public:
  /// `job`: of one process, without its share of the clients.
  Crew(const Case& one, object job) {
    const std::int64_t processes = std::min<std::int64_t>(4, one.param);
    for (std::int64_t i = 0; i < processes; ++i) {
      job["clients"] = one.param / processes + (i < one.param % processes ? 1 : 0);
      workers_.push_back(std::make_unique<Worker>(one.context, job, one.driver.command));
    }
    for (auto& worker : workers_) worker->await("ready", testkit::within(kWorkerPatience));
  }
  std::vector<Turn> slice() {
    for (auto& worker : workers_) worker->command("go");
    std::vector<Turn> turns;
    std::int64_t process = 0;
    for (auto& worker : workers_) {
      const auto result = worker->await("result", testkit::within(kWorkerPatience));
      for (const auto& row : result.at("grants").as_array()) {
        const auto field = [&](std::size_t i) { return row.at(i).to_number<std::int64_t>(); };
        const bool is_reader = row.as_array().size() > 4 && field(4) != 0;
        turns.push_back({process * 1000 + field(0), field(1), field(2), field(3), is_reader});
      }
      ++process;
    }
    return turns;
  }

 private:
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// They want one lock.
class Contention final : public Measurement {
 public:
  explicit Contention(const Case& one)
      : clients_(one.param),
        most_(100'000 / one.param),
        ours_(one.driver.is_ours()),
        crew_(one, job_of(one, most_)) {}
  object slice() override {
    auto judged =
        judge_turns(until_the_first_stopped(crew_.slice(), static_cast<std::size_t>(most_)),
                    static_cast<std::size_t>(clients_));
    const auto overlaps = judged.at("overlaps").to_number<std::int64_t>();
    if (overlaps > 0 && ours_) {
      // Nothing was broken here: no store may do that.
      judged["contradictions"] = boost::json::array{boost::json::string(
          fmt::format("{} grant(s) came before the holder began to give the lock back", overlaps))};
    }
    return judged;
  }

 private:
  static object job_of(const Case& one, std::int64_t most) {
    auto job = one.job("contend");
    job["max_turns"] = most;
    return job;
  }

  const std::int64_t clients_;
  const std::int64_t most_;
  const bool ours_;
  Crew crew_;
};

/// They share one.
class Sharing final : public Measurement {
 public:
  explicit Sharing(const Case& one)
      : permits_(number_of(one.scenario, "permits")),
        ours_(one.driver.is_ours()),
        crew_(one, job_of(one)) {}
  object slice() override {
    auto judged = judge_sharing(crew_.slice(), static_cast<std::uint64_t>(permits_));
    // Nothing was broken here: no store may do that. Others made us no promise.
    if (ours_ && !judged.at("broken").as_array().empty()) {
      judged["contradictions"] = judged.at("broken");
    }
    return judged;
  }

 private:
  static std::int64_t number_of(const object& scenario, const char* field) {
    const auto* found = scenario.if_contains(field);
    return found == nullptr ? 0 : found->to_number<std::int64_t>();
  }
  static object job_of(const Case& one) {
    auto job = one.job("share");
    for (const char* const field : {"permits", "readers_percent", "hold_us"}) {
      job[field] = number_of(one.scenario, field);
    }
    return job;
  }

  const std::int64_t permits_;
  const bool ours_;
  Crew crew_;
};

object measure_cost(const Case& one) {
  if (one.store.port() == 0) return {};
  testkit::FaultProxy proxy(one.store.port());
  auto job = one.job("pairs");
  job["url"] = one.store.url_through(proxy.port());
  job["count"] = one.param;
  Worker worker(one.context, job, one.driver.command);
  worker.await("ready", testkit::within(kWorkerPatience));
  const auto operations = one.store.operations();
  const auto before = proxy.stats();
  worker.command("go");
  worker.await("result", testkit::within(kWorkerPatience));
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

/// Whoever has asked is where he waits: the process has come to rest, or has had its time to.
void settle(const Case& one, int pid) {
  constexpr auto kWindow = std::chrono::milliseconds(250);
  constexpr double kRest = 0.05 * 0.25;  // a twentieth of a core
  const auto until = testkit::within(std::chrono::seconds(10));
  double before = figures_of(pid).value_or(ProcessFigures{}).cpu_seconds;
  while (testkit::Clock::now() < until) {
    one.context.interrupt.sleep(kWindow);
    const double now = figures_of(pid).value_or(ProcessFigures{}).cpu_seconds;
    if (now - before < kRest) return;
    before = now;
  }
}

object measure_crowd(const Case& one) {
  auto job = one.job("crowd");
  job["of"] = one.scenario.at("of");
  job["count"] = one.param;
  job["url"] = with_short_lease(one.store);
  Worker worker(one.context, job, one.driver.command);
  worker.await("ready", testkit::within(kWorkerPatience));
  const int pid = worker.process().pid();
  const auto alone = figures_of(pid).value_or(ProcessFigures{});
  worker.command("go");
  worker.await("there", testkit::within(kWorkerPatience));
  settle(one, pid);
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
  worker.await("result", testkit::within(kWorkerPatience));
  return {{"values", values}};
}

/// Measured at once, whole.
class Whole final : public Measurement {
 public:
  Whole(Case one, object (*measure)(const Case&)) : one_(std::move(one)), measure_(measure) {}
  object slice() override { return measure_(one_); }

 private:
  Case one_;
  object (*measure_)(const Case&);
};

}  // namespace

object values_of_pairs(const object& result) {
  const double pairs = field(result, "pairs");
  object values{{"pairs_per_s", pairs / field(result, "seconds")}};
  if (pairs == 0) return values;
  const auto& pair = result.at("pair");
  values["pair_p50_us"] = pair.at("p50_us");
  values["pair_p99_us"] = pair.at("p99_us");
  values["acquire_p50_us"] = result.at("acquire").at("p50_us");
  values["cpu_us_per_pair"] = field(result, "cpu_seconds") * 1e6 / pairs;
  return values;
}

std::unique_ptr<Measurement> make_measurement(const Case& one) {
  const std::string_view measure = one.scenario.at("measure").as_string();
  if (measure == "pairs" || measure == "tasks") return std::make_unique<Pairs>(one);
  if (measure == "open") return std::make_unique<Open>(one);
  if (measure == "contend") return std::make_unique<Contention>(one);
  if (measure == "readers" || measure == "permits") return std::make_unique<Sharing>(one);
  static const std::map<std::string_view, object (*)(const Case&)> whole{{"cost", &measure_cost},
                                                                         {"crowd", &measure_crowd}};
  return std::make_unique<Whole>(one, whole.at(measure));
}

object Case::job(const char* program) const {
  auto url = store.url();
  if (!driver.options.empty()) url += (url.find('?') == url.npos ? "?" : "&") + driver.options;
  return {
      {"program", program},
      {"driver", driver.is_ours() ? std::string(DriverProgram::kOurs) : driver.name},
      {"url", url},
      {"lock", fmt::format("dlock-compare/{}-{}-{}-{}", driver.name, param, repeat, begun_anew)},
      {"duration_ms", duration.count()}};
}

}  // namespace dlock::compare
