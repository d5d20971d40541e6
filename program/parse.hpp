// SPDX-License-Identifier: Apache-2.0
//
// Parses command lines with CLI11. Complaints name the wrong word and the remedy.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dlock::program {

/// The text of a command line that starts no work.
struct ParseEnd {
  std::string output;     ///< for standard output: help or version
  std::string complaint;  ///< for standard error
};

/// Parses the words after the program's name, up to a `--` that the caller handles (`has_dashes`).
/// Calls `check` after that, which may throw CLI::ParseError. Returns nullopt for a valid command
/// line.
std::optional<ParseEnd> parse(CLI::App& root, const std::vector<std::string>& words,
                              bool has_dashes, const std::function<void()>& check);

/// Returns the last verb that was understood; `root` if none was.
const CLI::App* innermost(const CLI::App& root);

/// Prints the text. Returns the exit status. Throws OutputFailed.
int print(const ParseEnd& end);

}  // namespace dlock::program
