// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/open.hpp"
#include "cli/output/semaphore_output.hpp"
#include "cli/verbs/commands.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::Exit;
using program::print_line;
using program::status;

int set_semaphore(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
  const auto limit = arguments.limit.value_or(0);
  locks.set_semaphore(arguments.name, limit);
  print_line(arguments.json ? semaphore_set_json(arguments.name, limit)
                            : fmt::format("{}: {} permits", arguments.name, limit));
  return status(Exit::ok);
}

int show_semaphore(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
  const auto found = locks.semaphore_status(arguments.name);
  print_line(arguments.json ? to_json(found) : to_text(found));
  return status(Exit::ok);
}

}  // namespace dlock::cli
