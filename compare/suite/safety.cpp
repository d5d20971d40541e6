// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/safety.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "compare/suite/peers.hpp"
#include "compare/suite/samples.hpp"
#include "compare/suite/scenario.hpp"
#include "compare/suite/stage.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;

constexpr double kPlannedSeconds = 6;
constexpr std::size_t kAtOnce = 8;

struct Task {
  object scenario;
  std::string store;  ///< an id
  std::string url;    ///< of the user's own; empty: one of ours
  bool pitfall = false;
  std::string peer = {};  ///< instead of dlock
  int repeat = 0;
};

bool contains(const object& scenario, const char* field, std::string_view wanted, bool otherwise) {
  const auto* list = scenario.if_contains(field);
  if (list == nullptr) return otherwise;
  const auto& names = list->as_array();
  return std::any_of(names.begin(), names.end(),
                     [&](const auto& one) { return one.as_string() == wanted; });
}

std::string text_or_empty(const object& scenario, const char* field) {
  const auto* value = scenario.if_contains(field);
  return value == nullptr ? std::string() : std::string(value->as_string());
}

bool is_for(const object& scenario, const std::string& store) {
  if (!contains(scenario, "stores", store, true) || contains(scenario, "except", store, false)) {
    return false;
  }
  const auto* needs = scenario.if_contains("needs");
  if (needs == nullptr) return true;
  const auto faults =
      make_store(store, Pace::short_leases, text_or_empty(scenario, "flavour"))->faults();
  return std::all_of(needs->as_array().begin(), needs->as_array().end(), [&](const auto& need) {
    return std::find(faults.begin(), faults.end(), need.as_string()) != faults.end();
  });
}

std::vector<Task> one_try_of_each(const Options& options, const std::vector<std::string>& stores,
                                  const std::vector<std::string>& urls) {
  std::vector<Task> tasks;
  for (const auto* file : {"safety", "pitfalls"}) {
    const bool pitfall = std::string_view(file) == "pitfalls";
    for (const auto& entry : scenarios(file)) {
      const auto& scenario = entry.as_object();
      if (!is_wanted(options, scenario)) continue;
      for (const auto& store : stores) {
        if (!is_for(scenario, store)) continue;
        tasks.push_back({scenario, store, {}, pitfall});
        if (pitfall) continue;
        for (const auto& peer : guards_on(options, make_store(store, Pace::short_leases)->kind())) {
          tasks.push_back({scenario, store, {}, false, peer});
        }
      }
      // Others use the user's server: nothing is done to it, and nothing between it and us.
      const bool harmless = !pitfall && !scenario.contains("needs") &&
                            !scenario.contains("stores") && !scenario.contains("network");
      for (const auto& url : urls) {
        const auto id = make_user_store(url)->kind().id;
        if (harmless && !contains(scenario, "except", id.substr(5), false)) {
          tasks.push_back({scenario, id, url, false});
        }
      }
    }
  }
  return tasks;
}

/// The tries of a fault are far apart: what else the machine does strikes one of them, not all.
std::vector<Task> tasks_of(const Options& options, const std::vector<std::string>& stores,
                           const std::vector<std::string>& urls) {
  const auto once = one_try_of_each(options, stores, urls);
  std::vector<Task> tasks;
  for (int repeat = 0; repeat < samples_of(options.depth).tries; ++repeat) {
    for (auto task : once) {
      if (task.pitfall && repeat > 0) continue;  // a flaw is shown, not counted
      task.repeat = repeat;
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

/// Servers for scenarios. One that does nothing to the servers shares them with others: each has a
/// lock of its own. Any thread.
class Servers {
 public:
  std::shared_ptr<Store> get(const Task& task) {
    const auto flavour = text_or_empty(task.scenario, "flavour");
    if (!task.url.empty()) return make_user_store(task.url);
    if (task.scenario.contains("needs")) return started(task.store, flavour);
    Shared* shared = nullptr;
    {
      const std::scoped_lock guard(mutex_);
      shared = &shared_[task.store];
    }
    const std::scoped_lock guard(shared->mutex);
    if (!shared->store) shared->store = started(task.store, flavour);
    return shared->store;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::shared_ptr<Store> store;
  };
  static std::shared_ptr<Store> started(const std::string& id, const std::string& flavour) {
    std::shared_ptr<Store> store = make_store(id, Pace::short_leases, flavour);
    store->start();
    return store;
  }

  std::mutex mutex_;
  std::map<std::string, Shared> shared_;
};

/// The assumptions that the scenario breaks and this store names: then nothing is promised.
boost::json::array broken_assumptions(const object& scenario, const object& declared) {
  boost::json::array broken;
  for (const auto& assumption : declared.at("assumptions").as_array()) {
    if (contains(scenario, "breaks", assumption.at(0).as_string(), false)) {
      broken.push_back(assumption.at(0));
    }
  }
  return broken;
}

object play(Context& context, Servers& servers, const Task& task) {
  const auto store = servers.get(task);
  Stage stage(context, task.scenario, *store,
              task.peer.empty() ? DriverProgram{"dlock"} : guard_program(context, task.peer));
  stage.play();
  object result = judge(stage.outcome());
  result["events"] = std::move(stage.events());
  if (!task.peer.empty()) return result;  // the store's word to us is not theirs
  result["declared"] = stage.declared();
  auto broken = broken_assumptions(task.scenario, stage.declared());
  boost::json::array found;
  if (broken.empty()) {
    for (auto& one : contradictions(stage.outcome(), result, stage.declared())) {
      found.push_back(boost::json::string(one));
    }
  }
  result["contradictions"] = std::move(found);
  result["broken_assumptions"] = std::move(broken);
  return result;
}

/// Whether the flaw that a pitfall is about was seen.
bool shows(const std::string& what, Stage& stage, const object& judged) {
  if (what == "missed") return !judged.at("missed").as_array().empty();
  if (what == "token_back") return !judged.at("tokens_fell").as_array().empty();
  const auto client = what.substr(what.find(':') + 1);
  if (what.starts_with("untold:")) return stage.was_granted(client) && !stage.was_told_lost("A");
  return stage.was_granted(client);
}

object play_pitfall(Context& context, Servers& servers, const Task& task) {
  if (task.scenario.contains("measure")) return measure_herd(context, task.scenario);
  object result;
  const std::string what = text_or_empty(task.scenario, "shows");
  for (const std::string driver : {"naive", "dlock"}) {
    const auto store = servers.get(task);
    Stage stage(context, task.scenario, *store, DriverProgram{driver});
    stage.play();
    object judged = judge(stage.outcome());
    judged["happened"] = shows(what, stage, judged);
    judged["events"] = std::move(stage.events());
    result[driver == "naive" ? "naive" : "ours"] = std::move(judged);
  }
  boost::json::array found;
  if (!result.at("naive").at("happened").as_bool()) {
    found.push_back("the flaw was to show in its naive form, and did not");
  }
  if (result.at("ours").at("happened").as_bool()) found.push_back("ours has the flaw, too");
  result["contradictions"] = std::move(found);
  return result;
}

void run_task(Context& context, Servers& servers, const Task& task) {
  const auto id = task.scenario.at("id").as_string();
  context.progress.begin(fmt::format("{}{}: {}", task.store,
                                     task.peer.empty() ? "" : " with " + task.peer,
                                     task.scenario.at("title").as_string().c_str()));
  object result;
  try {
    result = task.pitfall ? play_pitfall(context, servers, task) : play(context, servers, task);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    result["failed"] = error.what();
  }
  result["kind"] = task.pitfall ? "pitfall" : task.peer.empty() ? "safety" : "peer";
  if (!task.peer.empty()) result["driver"] = task.peer;
  result["scenario"] = id;
  result["store"] = task.store;
  result["repeat"] = task.repeat;
  context.add(std::move(result));
  context.progress.done(kPlannedSeconds / kAtOnce);
}

}  // namespace

double plan_safety(const Options& options, const std::vector<std::string>& stores,
                   const std::vector<std::string>& urls) {
  return static_cast<double>(tasks_of(options, stores, urls).size()) * kPlannedSeconds / kAtOnce;
}

void run_safety(Context& context, const std::vector<std::string>& stores,
                const std::vector<std::string>& urls) {
  const auto tasks = tasks_of(context.options, stores, urls);
  Servers servers;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr ended;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(kAtOnce, tasks.size()); ++i) {
      threads.emplace_back([&] {
        try {
          for (auto at = next++; at < tasks.size(); at = next++) {
            context.interrupt.check();
            run_task(context, servers, tasks[at]);
          }
        } catch (...) {
          const std::scoped_lock guard(mutex);
          ended = std::current_exception();
        }
      });
    }
  }
  if (ended) std::rethrow_exception(ended);
}

}  // namespace dlock::compare
