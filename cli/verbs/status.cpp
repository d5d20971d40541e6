// SPDX-License-Identifier: Apache-2.0
#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/output/semaphore_output.hpp"
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

/// Likewise; of one that nobody has used nothing is said.
std::optional<SemaphoreStatus> semaphore_of(LockManager& locks, const std::string& name) {
  try {
    auto found = locks.semaphore_status(name);
    if (found.limit || !found.holders.empty()) return found;
  } catch (const LockError&) {  // NOLINT(bugprone-empty-catch): see there
  }
  return std::nullopt;
}

std::string text_of(const LockStatus& lock, const std::optional<RunRecord>& run,
                    const std::optional<SemaphoreStatus>& semaphore) {
  auto text = to_text(lock, run);
  if (semaphore) text += "\nsemaphore " + to_text(*semaphore);
  return text;
}

}  // namespace

int show_status(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
  const LockStatus found = locks.status(arguments.name);
  const auto run = last_run(locks, arguments.name);
  const auto semaphore = semaphore_of(locks, arguments.name);
  print_line(arguments.json ? to_json(found, run, semaphore) : text_of(found, run, semaphore));
  return status(Exit::ok);
}

}  // namespace dlock::cli
