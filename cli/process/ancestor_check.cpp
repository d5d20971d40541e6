// SPDX-License-Identifier: Apache-2.0
#include "cli/process/ancestor_check.hpp"

#include <exception>
#include <system_error>
#include <utility>

#include "cli/process/process_table.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::cli {
namespace {

/// A pid that was used again belongs to a process that is younger than the grant.
bool is_ancestor(const Owner& owner, const std::optional<std::chrono::milliseconds>& held_for) {
  constexpr std::chrono::seconds kClocksApart{1};
  if (!held_for || !runs_here(owner)) return false;
  const auto age = age_of_ancestor(static_cast<pid_t>(owner.pid));
  return age && *age + kClocksApart >= *held_for;
}

}  // namespace

std::int64_t holding_ancestor(const LockStatus& status) {
  if (!status.held) return 0;
  if (status.owner && is_ancestor(*status.owner, status.held_for)) return status.owner->pid;
  for (const auto& reader : status.readers) {
    if (is_ancestor(reader.owner, reader.held_for)) return reader.owner.pid;
  }
  return 0;
}

AncestorCheck::AncestorCheck(LockManager& locks, const std::string& name,
                             std::function<void()> found) {
  try {
    thread_ = start_thread([this, &locks, name, found = std::move(found)] {
      try {
        holder_ = holding_ancestor(locks.status(name));
        if (holder_ != 0) found();
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the wait says why
      }
    });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): it waits as without a check
  }
}

AncestorCheck::~AncestorCheck() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace dlock::cli
