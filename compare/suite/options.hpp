// SPDX-License-Identifier: Apache-2.0
//
// What `dlock compare` was asked for.
#pragma once

#include <filesystem>
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

/// Runs the suite: the table on standard output, progress on standard error, reports in `out`.
/// Returns the exit status. Signals: SIGINT, SIGTERM, SIGHUP keep what was measured.
int run_suite(const Options& options);

/// Renders raw results again, one run or two side by side, into `out`.
int render_reports(const std::vector<std::filesystem::path>& raw, const std::filesystem::path& out);

}  // namespace dlock::compare
