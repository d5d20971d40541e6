// SPDX-License-Identifier: Apache-2.0
#include "cli/open.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/output/json.hpp"
#include "cli/output/output.hpp"
#include "cli/output/text.hpp"
#include "cli/verbs/commands.hpp"

namespace dlock::cli {

int list(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
  const auto found = locks.list(arguments.name);
  print_line(arguments.json ? to_json(found) : to_text(found));
  return status(Exit::ok);
}

}  // namespace dlock::cli
