// SPDX-License-Identifier: Apache-2.0
//
// The program dlock-compare, which `dlock compare` executes.
#include <CLI/CLI.hpp>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "compare/drivers/worker.hpp"
#include "compare/suite/options.hpp"
#include "dlock/version.hpp"
#include "program/exit_codes.hpp"
#include "program/hide_password.hpp"
#include "program/output.hpp"
#include "program/parse.hpp"
#include "program/signals.hpp"

namespace dlock::compare {
namespace {

using program::complain;
using program::Exit;
using program::status;

struct CommandLine {
  Options options;
  bool list = false;
  bool report = false;
  bool quiet = false;
  std::string store;
  std::string out;
  std::vector<std::filesystem::path> raw_files;
};

void add_report(CLI::App& app, CommandLine& line) {
  auto* report = app.add_subcommand("report", "Render raw results again; two side by side");
  report->fallthrough();
  report->callback([&line] { line.report = true; });
  const auto add_raw = [&line](const std::string& file) { line.raw_files.emplace_back(file); };
  report->add_option_function<std::string>("RAW", add_raw, "raw.json of a run")
      ->required()
      ->type_name("");
  report->add_option_function<std::string>("SECOND", add_raw, "raw.json of another, to compare")
      ->type_name("");
  report->add_option("--out", line.out, "Where report.html and report.md go (default: here)")
      ->type_name("DIR");
}

void add_compare(CLI::App& root, CommandLine& line) {
  auto& app = *root.add_subcommand(
      "compare",
      "Measure which store should hold your locks: speed, safety under real faults, pitfalls");
  app.fallthrough();  // --store and --quiet are options of the command dlock
  app.require_subcommand(0, 1);
  auto* quick = app.add_flag_callback(
      "--quick", [&line] { line.options.depth = Depth::quick; },
      "Fewer scenarios, each with as many samples: about two minutes (--list says which)");
  app.add_flag_callback(
         "--full", [&line] { line.options.depth = Depth::full; },
         "More clients, more samples of each measurement")
      ->excludes(quick);
  auto* list =
      app.add_flag("--list", line.list,
                   "Only print the scenarios, a line each, and what --quick and --full take of "
                   "them");
  const auto add_names = [&](const char* name, std::vector<std::string>& names, const char* help,
                             const char* type) {
    list->excludes(app.add_option(name, names, help)->delimiter(',')->type_name(type));
  };
  add_names("--scenarios", line.options.scenarios,
            "Only these, by id or the beginning of ids: speed, safety.flush (with commas)", "ID");
  add_names("--stores", line.options.stores,
            "Only these: local, zookeeper, zookeeper3, redis, redis-durable, redis-sentinel, "
            "memcached; they are started for it",
            "STORE");
  add_names("--peers", line.options.peers,
            "Other clients beside: kazoo, curator, redis-py, node-redlock", "CLIENT");
  app.add_option("--out", line.out,
                 "Where report.html, report.md and raw.json go (default: "
                 "dlock-compare-DATE-TIME)")
      ->type_name("DIR");
  app.add_option("--plant", line.options.plant, "")->group("");
  add_report(app, line);
}

/// Users pass reports on, so this removes names and passwords from URLs.
std::string without_secrets(std::string line) {
  for (auto at = line.find("://"); at != std::string::npos; at = line.find("://", at + 3)) {
    const auto end = line.find_first_of("/ ", at + 3);
    const auto mark = line.rfind('@', end);
    if (mark != std::string::npos && mark > at) line.replace(at + 3, mark - at - 3, "***");
  }
  return line;
}

int dispatch(CommandLine& line) {
  if (line.report) return render_reports(line.raw_files, line.out.empty() ? "." : line.out);
  if (line.list) {
    program::print_line(scenario_list());
    return status(Exit::ok);
  }
  line.options.out = line.out;
  if (!line.store.empty()) line.options.urls.push_back(line.store);
  return run_suite(line.options);
}

int guarded(CommandLine& line) {
  try {
    return dispatch(line);
  } catch (const NothingToMeasure& error) {
    complain(error.what());
    return status(Exit::no_input);
  } catch (const std::invalid_argument& error) {
    complain(error.what());
    return status(Exit::usage);
  } catch (const std::exception& error) {
    complain(error.what());
    return status(Exit::unavailable);
  }
}

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App root{"", "dlock"};
  root.require_subcommand(1);
  root.set_version_flag("--version", "dlock-compare " DLOCK_VERSION);
  auto* config = root.add_option("--config")->type_name("FILE");  // valid for all verbs; not used
  root.add_option("--store", line.store)->type_name("URL")->excludes(config);
  root.add_flag("-q,--quiet", line.quiet);
  add_compare(root, line);
  // Help and complaints are those of the verb.
  std::vector<std::string> words{"compare"};
  words.insert(words.end(), argv + 1, argv + argc);
  if (const auto end = program::parse(root, words, false, [] {})) return program::print(*end);
  if (line.quiet) program::be_quiet();
  program::hide_passwords(argc, argv);
  line.options.command_line = "dlock compare";
  for (int i = 1; i < argc; ++i) line.options.command_line += " " + without_secrets(argv[i]);
  const int code = guarded(line);
  // A run that a signal has ended does not wait for its reader.
  if (code < status(Exit::signal_base)) program::finish_output();
  return code;
}

}  // namespace
}  // namespace dlock::compare

int main(int argc, char** argv) {
  dlock::program::occupy_standard_descriptors();
  dlock::program::ignore_broken_pipes();
  try {
    if (argc == 2 && std::string_view(argv[1]) == dlock::compare::kWorkerVerb) {
      return dlock::compare::worker_main();
    }
    return dlock::compare::run(argc, argv);
  } catch (const dlock::program::OutputFailed& failed) {
    return dlock::program::report_failed_output(failed);
  } catch (const std::exception& error) {
    dlock::program::complain(error.what());
    return dlock::program::status(dlock::program::Exit::usage);
  }
}
