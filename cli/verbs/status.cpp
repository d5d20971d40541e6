// SPDX-License-Identifier: Apache-2.0
#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/output/text.hpp"
#include "cli/verbs/commands.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::Exit;
using program::print_line;
using program::status;

namespace {

/// What cannot be said of it is not: the lock is what was asked for.
std::optional<RunRecord> last_run(LockManager& locks, const std::string& name) {
  try {
    return Schedule::last(locks, name);
  } catch (const LockError&) {
    return std::nullopt;
  }
}

}  // namespace

int show_status(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
  const LockStatus found = locks.status(arguments.name);
  const auto run = last_run(locks, arguments.name);
  print_line(arguments.json ? to_json(found, run) : to_text(found, run));
  return status(Exit::ok);
}

}  // namespace dlock::cli
