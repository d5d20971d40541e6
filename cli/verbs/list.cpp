// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <set>

#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/output/text.hpp"
#include "cli/verbs/commands.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::Exit;
using program::print_line;
using program::status;
using program::warn;

namespace {

/// Prints what is missing from the list. Returns the status of the first failure.
Exit tell_unread(const std::vector<LockError>& unread) {
  Exit code = Exit::ok;
  std::set<std::string> told;
  for (const auto& error : unread) {
    const auto text =
        fmt::format("the list is incomplete: {}",
                    explanation(error.code(), {error.lock(), error.store(), error.server_text()}));
    if (!told.insert(text).second) continue;
    if (error.code() == errc::not_supported) {
      warn(text);
      continue;
    }
    complain(text);
    if (code == Exit::ok) code = program::exit_of(error.code());
  }
  return code;
}

}  // namespace

int list(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
  std::vector<LockError> unread;
  const auto found = locks.list(arguments.name, unread);
  const auto semaphores = locks.list_semaphores(arguments.name, unread);
  print_line(arguments.json ? to_json(found, semaphores) : to_text(found, semaphores));
  return status(tell_unread(unread));
}

}  // namespace dlock::cli
