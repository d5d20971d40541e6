// SPDX-License-Identifier: Apache-2.0
//
// Where the comparison suite was not built, nothing parses to its verbs.
#include "cli/verbs/commands.hpp"
#include "program/exit_codes.hpp"

namespace dlock::cli {

using program::Exit;
using program::status;

int compare(const Arguments&, const std::string&) { return status(Exit::usage); }
int compare_report(const Arguments&) { return status(Exit::usage); }
int compare_worker() { return status(Exit::usage); }

}  // namespace dlock::cli
