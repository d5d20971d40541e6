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

int list(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
  const auto found = locks.list(arguments.name);
  const auto semaphores = locks.list_semaphores(arguments.name);
  print_line(arguments.json ? to_json(found, semaphores) : to_text(found, semaphores));
  return status(Exit::ok);
}

}  // namespace dlock::cli
