// SPDX-License-Identifier: Apache-2.0
#include "cli/waiting_note.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "cli/output.hpp"
#include "cli/text.hpp"
#include "core/thread.hpp"

namespace dlock::cli {

std::string holder_of(LockManager& locks, const std::string& name) noexcept {
  try {
    const auto status = locks.status(name);
    if (!status.held) return {};
    auto text = fmt::format("held by {}", who(status.owner.value_or(Owner{})));
    if (status.held_for) text += fmt::format(" for {}", rounded(*status.held_for));
    return text;
  } catch (...) {
    return {};
  }
}

bool WaitingNote::is_wanted() noexcept { return !is_quiet() && ::isatty(STDERR_FILENO) != 0; }

WaitingNote::WaitingNote(LockManager& locks, const std::string& name) {
  try {
    thread_ = core::start_thread([&locks, name] {
      const auto holder = holder_of(locks, name);
      complain(fmt::format("waiting for {}{}{}", name, holder.empty() ? "" : ", ", holder));
    });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): then without a word
  }
}

WaitingNote::~WaitingNote() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace dlock::cli
