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

namespace {

/// Where a lock was meant and permits are held: the same name may be both.
std::string about_semaphore(LockManager& locks, const std::string& name) {
  try {
    if (locks.semaphore_status(name).holders.empty()) return {};
  } catch (const LockError&) {
    return {};
  }
  return "; there is a semaphore of that name, too, of which permits are held: --semaphore";
}

[[noreturn]] void refuse(const LockError& why, const std::string& more) {
  throw LockError(why.code(), {why.lock(), why.store(), why.server_text() + more});
}

void evict_holder(LockManager& locks, const Arguments& arguments) {
  try {
    locks.evict(arguments.name, arguments.token);
  } catch (const LockError& error) {
    const bool may_be_meant = error.code() == errc::not_found || error.code() == errc::not_holder;
    const auto more = may_be_meant ? about_semaphore(locks, arguments.name) : std::string();
    if (more.empty()) throw;
    refuse(error, more);
  }
}

/// Of the holder with that id.
std::uint64_t token_of(LockManager& locks, const Arguments& arguments) {
  if (arguments.holder.empty()) return arguments.token;
  const auto now = locks.semaphore_status(arguments.name);
  for (const auto& holder : now.holders) {
    if (holder.owner.id == arguments.holder) return holder.token.value_or(0);
  }
  std::string text = "nobody with that id has permits";
  for (const auto& holder : now.holders) {
    text += fmt::format("{} {} (token {})", text.ends_with("permits") ? "; who has any:" : ",",
                        holder.owner.id, holder.token.value_or(0));
  }
  throw LockError(make_error_code(now.holders.empty() ? errc::not_found : errc::not_holder),
                  {arguments.name, {}, std::move(text)});
}

int break_permits(LockManager& locks, const Arguments& arguments) {
  const auto token = token_of(locks, arguments);
  locks.evict_permits(arguments.name, token);
  print_line(arguments.json ? to_json(BrokenLock{arguments.name, token, true})
                            : fmt::format("{}: permits taken from the holder with token {}",
                                          arguments.name, token));
  return status(Exit::ok);
}

}  // namespace

int break_lock(const Arguments& arguments) {
  LockManager locks = open_manager(arguments);
  if (arguments.ask) return ask_for_lock(locks, arguments);
  if (arguments.of_semaphore) return break_permits(locks, arguments);
  evict_holder(locks, arguments);
  if (arguments.json) {
    print_line(to_json(BrokenLock{arguments.name, arguments.token}));
  } else {
    print_line(
        fmt::format("{}: taken from the holder with token {}", arguments.name, arguments.token));
  }
  return status(Exit::ok);
}

}  // namespace dlock::cli
