// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/open.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/output/json.hpp"
#include "cli/output/output.hpp"
#include "cli/verbs/commands.hpp"

namespace dlock::cli {

int break_lock(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
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
