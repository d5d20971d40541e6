// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/verbs/commands.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::Exit;
using program::print_line;
using program::status;

int break_lock(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
  if (arguments.ask) return ask_for_lock(locks, arguments);
  locks.evict(arguments.name, arguments.token);
  if (arguments.json) {
    print_line(to_json(BrokenLock{arguments.name, arguments.token}));
  } else {
    print_line(
        fmt::format("{}: taken from the holder with token {}", arguments.name, arguments.token));
  }
  return status(Exit::ok);
}

}  // namespace dlock::cli
