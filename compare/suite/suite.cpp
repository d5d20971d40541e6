// SPDX-License-Identifier: Apache-2.0
//
// A run from its beginning to its end.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

#include "compare/report/report.hpp"
#include "compare/servers/store.hpp"
#include "compare/suite/busy.hpp"
#include "compare/suite/context.hpp"
#include "compare/suite/machine.hpp"
#include "compare/suite/peers.hpp"
#include "compare/suite/run_folder.hpp"
#include "compare/suite/safety.hpp"
#include "compare/suite/scenario.hpp"
#include "compare/suite/speed.hpp"
#include "compare/suite/worker_process.hpp"
#include "dlock/version.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"
#include "program/signals.hpp"
#include "testkit/servers/server.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {

namespace {

using boost::json::object;

/// The stores that can be run here; the others go to `missing`, with what to install.
std::vector<std::string> usable_stores(const Options& options, boost::json::array& missing) {
  std::vector<std::string> wanted = options.stores;
  if (wanted.empty() && options.urls.empty()) {
    for (const auto& kind : store_kinds()) wanted.push_back(kind.id);
  }
  std::vector<std::string> usable;
  for (const auto& id : wanted) {
    const auto store = make_store(id, Pace::short_leases);
    try {
      if (store->kind().family == "redis")
        testkit::find_server_program("redis-server", "redis-server");
      if (store->kind().family == "memcached")
        testkit::find_server_program("memcached", "memcached");
      if (store->kind().family == "zookeeper") {
        testkit::find_server_program("java", "default-jre-headless");
        if (!std::filesystem::exists("/usr/share/java/zookeeper.jar")) {
          throw testkit::MissingPackage("zookeeper.jar", "libzookeeper-java");
        }
      }
      usable.push_back(id);
    } catch (const testkit::MissingPackage& error) {
      if (!options.stores.empty()) throw;
      missing.push_back(object{{"store", id}, {"why", error.what()}});
    }
  }
  return usable;
}

/// One store: what it is, what it declares (both also of a run that is interrupted), and its speed.
void visit(Context& context, Store& store, boost::json::array& descriptions) {
  context.progress.begin("starting " + store.kind().title);
  object description{{"id", store.kind().id},
                     {"title", store.kind().title},
                     {"family", store.kind().family},
                     {"words", store.kind().words}};
  try {
    store.start();
    description["version"] = store.version();
    description["declared"] = run_worker(context, {{"program", "inspect"}, {"url", store.url()}});
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    context.progress.note(fmt::format("{}: {}", store.kind().title, error.what()));
    description["failed"] = error.what();
  }
  const auto* const said = description.if_contains("declared");
  const auto declared = said == nullptr ? object() : said->as_object();
  descriptions.push_back(std::move(description));
  if (said != nullptr) run_speed(context, store, declared);
}

/// In seconds. Throws NothingToMeasure.
double plan_of(const Options& options, const std::vector<std::string>& stores) {
  const double plan = plan_speed(options, stores.size() + options.urls.size()) +
                      plan_safety(options, stores, options.urls);
  if (plan == 0) {
    throw NothingToMeasure(fmt::format(
        "nothing to measure: none of the scenarios that were named ({}) is for the stores that "
        "were chosen ({}); 'dlock compare --list' has them all",
        fmt::join(options.scenarios, ", "),
        stores.empty() ? "your own: its servers are left alone"
                       : fmt::format("{}", fmt::join(stores, ", "))));
  }
  return plan + 3.0 * static_cast<double>(stores.size());
}

void measure_all(Context& context, const std::vector<std::string>& stores,
                 boost::json::array& descriptions) {
  const auto& options = context.options;
  for (const auto& id : stores) {
    const auto store = make_store(id, Pace::working);
    visit(context, *store, descriptions);
    context.progress.done(3);
  }
  for (const auto& url : options.urls) {
    const auto store = make_user_store(url);
    visit(context, *store, descriptions);
  }
  run_safety(context, stores, options.urls);
}

std::string timestamp(const char* format) {
  const std::time_t now = std::time(nullptr);
  return fmt::format(fmt::runtime(format), fmt::localtime(now));
}

std::filesystem::path default_folder() { return "dlock-compare-" + timestamp("{:%Y%m%d-%H%M%S}"); }

/// Everything is kept, also of a run that was interrupted.
object raw_of(Context& context, object machine, boost::json::array descriptions,
              boost::json::array missing, double seconds) {
  machine["load_after"] = load_average();
  const std::scoped_lock guard(context.mutex);
  return {{"schema", 1},
          {"dlock", DLOCK_VERSION},
          {"command", context.options.command_line},
          {"depth", to_string(context.options.depth)},
          {"finished", timestamp("{:%Y-%m-%d %H:%M:%S %z}")},
          {"seconds", seconds},
          {"interrupted", context.interrupt.signal() != 0},
          {"left_out", boost::json::value_from(left_out(context.options))},
          {"machine", std::move(machine)},
          {"stores", std::move(descriptions)},
          {"missing", std::move(missing)},
          {"results", context.results}};
}

int status_of(const object& raw, int signal) {
  if (signal != 0) return program::signal_status(signal);
  if (raw.at("results").as_array().empty()) {
    program::complain("nothing was measured");
    return program::status(program::Exit::no_input);
  }
  for (const auto& store : raw.at("stores").as_array()) {
    if (store.as_object().contains("failed")) return program::status(program::Exit::contradicted);
  }
  for (const auto& result : raw.at("results").as_array()) {
    const auto* found = result.as_object().if_contains("contradictions");
    if (found != nullptr && !found->as_array().empty())
      return program::status(program::Exit::contradicted);
    if (result.as_object().contains("failed")) return program::status(program::Exit::contradicted);
  }
  return 0;
}

/// Throws NothingToMeasure.
object read_raw(const std::filesystem::path& file) {
  std::error_code missing;
  if (!std::filesystem::is_regular_file(file, missing)) {
    throw NothingToMeasure(fmt::format(
        "there is no file '{}'; give the raw.json of a run: it is in the folder that --out named",
        file.string()));
  }
  boost::json::error_code error;
  auto raw = boost::json::parse(testkit::read_file(file), error);
  const auto* fields = error ? nullptr : raw.if_object();
  if (fields == nullptr || !fields->contains("schema") || fields->at("schema") != 1) {
    throw NothingToMeasure("'" + file.string() +
                           "' is no raw.json of this version of dlock compare");
  }
  return std::move(raw.as_object());
}

}  // namespace

int run_suite(const Options& options) {
  program::Signals signals({SIGINT, SIGTERM, SIGHUP});
  check_names(options);
  check_peers(options.peers);
  RunFolder::sweep();
  // Reports are written where the user is, all else below the run's folder.
  const auto out = std::filesystem::absolute(options.out.empty() ? default_folder() : options.out);
  RunFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  Interrupt interrupt(signals.descriptor(), [&folder] { folder.remove(); });
  const auto start = testkit::Clock::now();
  auto machine = describe_machine();
  BusyWatch watch;
  boost::json::array missing, descriptions;
  object raw;
  {
    Progress progress;
    for (const auto& why : reasons_to_doubt(machine)) {
      progress.note(
          fmt::format("the machine is busy: {}; no ratio will be called good or bad", why));
    }
    Context context{options, interrupt, progress, folder.path()};
    try {
      const auto stores = usable_stores(options, missing);
      for (const auto& one : missing) progress.note(one.at("why").as_string());
      progress.plan(plan_of(options, stores));
      std::filesystem::create_directories(out);
      measure_all(context, stores, descriptions);
    } catch (const Interrupted&) {
      progress.note("interrupted; what was measured is kept");
    }
    machine["busy"] = watch.so_far();
    raw = raw_of(context, std::move(machine), std::move(descriptions), std::move(missing),
                 std::chrono::duration<double>(testkit::Clock::now() - start).count());
  }
  std::filesystem::create_directories(out);
  testkit::write_file(out / "raw.json", boost::json::serialize(raw));
  program::print_line(write_reports({raw}, out));
  program::write_message(fmt::format("dlock compare: {}\n", (out / "report.html").string()));
  return status_of(raw, interrupt.signal());
}

int render_reports(const std::vector<std::filesystem::path>& files,
                   const std::filesystem::path& out) {
  std::vector<object> runs;
  for (const auto& file : files) runs.push_back(read_raw(file));
  try {
    make_document(runs);
  } catch (const std::exception& error) {  // what a run writes is whole: fields are missing
    throw NothingToMeasure(
        fmt::format("{} is damaged: {}",
                    files.size() > 1 ? "one of the two files" : "'" + files.front().string() + "'",
                    error.what()));
  }
  std::filesystem::create_directories(out);
  program::print_line(write_reports(runs, out));
  return 0;
}

}  // namespace dlock::compare
