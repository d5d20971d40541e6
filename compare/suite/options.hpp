// SPDX-License-Identifier: Apache-2.0
//
// What `dlock compare` was asked for.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace dlock::compare {

enum class Depth { quick, standard, full };

struct Options {
  Depth depth = Depth::standard;
  std::vector<std::string> scenarios;  ///< ids, or the beginnings of ids; empty: all
  std::vector<std::string> stores;     ///< ids; empty: all, or the user's if there are any
  std::vector<std::string> urls;       ///< stores of the user's own
  std::vector<std::string> peers;      ///< other clients to measure beside
  std::filesystem::path out;           ///< folder; empty: dlock-compare-<date>-<time> here
  std::string plant;                   ///< of the tests: a defect that the suite must find
  std::string command_line;            ///< as it was written, for the report
};

/// There is no such scenario, store, client or file, or what was chosen leaves nothing to measure.
/// The text names the nearest that there is, or all.
class NothingToMeasure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The scenarios, a line each, and what each depth takes of them.
std::string scenario_list();

/// Runs the suite: the table on standard output, progress on standard error, reports in `out`.
/// Returns the exit status. Signals: SIGINT, SIGTERM, SIGHUP keep what was measured.
/// Throws NothingToMeasure before anything is started, std::invalid_argument for a URL that is
/// none.
int run_suite(const Options& options);

/// Renders raw results again, one run or two side by side, into `out`.
/// Throws NothingToMeasure for a file that is not there or is no raw.json of this version.
int render_reports(const std::vector<std::filesystem::path>& raw, const std::filesystem::path& out);

}  // namespace dlock::compare
