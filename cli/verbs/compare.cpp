// SPDX-License-Identifier: Apache-2.0
//
// `dlock compare`: hands the arguments to the comparison suite.
#include <stdexcept>

#include "cli/verbs/commands.hpp"
#include "compare/drivers/worker.hpp"
#include "compare/suite/options.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::Exit;
using program::print_line;
using program::status;

namespace {

dlock::compare::Depth depth_of(CompareDepth depth) {
  using dlock::compare::Depth;
  if (depth == CompareDepth::quick) return Depth::quick;
  return depth == CompareDepth::full ? Depth::full : Depth::standard;
}

/// Reports are passed on: without what a URL says of users and passwords.
std::string without_secrets(std::string line) {
  for (auto at = line.find("://"); at != std::string::npos; at = line.find("://", at + 3)) {
    const auto end = line.find_first_of("/ ", at + 3);
    const auto mark = line.rfind('@', end);
    if (mark != std::string::npos && mark > at) line.replace(at + 3, mark - at - 3, "***");
  }
  return line;
}

}  // namespace

int compare(const Arguments& arguments, const std::string& command_line) {
  if (arguments.list_scenarios) {
    print_line(dlock::compare::scenario_list());
    return status(Exit::ok);
  }
  dlock::compare::Options options;
  options.depth = depth_of(arguments.depth);
  options.scenarios = arguments.scenarios;
  options.stores = arguments.stores;
  options.peers = arguments.peers;
  options.out = arguments.out_folder;
  options.plant = arguments.plant;
  options.command_line = without_secrets(command_line);
  if (!arguments.store_url.empty()) options.urls.push_back(arguments.store_url);
  try {
    return dlock::compare::run_suite(options);
  } catch (const dlock::compare::NothingToMeasure& error) {
    complain(error.what());
    return status(Exit::no_input);
  } catch (const std::invalid_argument& error) {
    complain(error.what());
    return status(Exit::usage);
  }
}

int compare_report(const Arguments& arguments) {
  std::vector<std::filesystem::path> files(arguments.raw_files.begin(), arguments.raw_files.end());
  const std::filesystem::path out(arguments.out_folder.empty() ? "." : arguments.out_folder);
  try {
    return dlock::compare::render_reports(files, out);
  } catch (const dlock::compare::NothingToMeasure& error) {
    complain(error.what());
    return status(Exit::no_input);
  }
}

int compare_worker() { return dlock::compare::worker_main(); }

}  // namespace dlock::cli
