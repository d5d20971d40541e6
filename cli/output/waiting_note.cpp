// SPDX-License-Identifier: Apache-2.0
#include "cli/output/waiting_note.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "cli/output/text.hpp"
#include "dlock/error.hpp"
#include "dlock/spi/thread.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::is_quiet;

namespace {

/// The longest time that a message waits for the name of a holder.
constexpr std::chrono::milliseconds kLook{500};

std::string words_about(const LockStatus& status) {
  if (!status.held) return {};
  auto text = fmt::format("held by {}", holder_words(status));
  if (status.held_for) text += fmt::format(" for {}", rounded(*status.held_for));
  return text;
}

}  // namespace

std::string holder_of(LockManager& locks, const std::string& name) noexcept {
  try {
    return words_about(locks.status(name, kLook));
  } catch (...) {
    return {};
  }
}

std::string waiter_ahead(LockManager& locks, const std::string& name,
                         std::uint32_t permits) noexcept {
  try {
    const auto status = locks.semaphore_status(name);
    if (!status.limit || status.free() < permits || status.waiting.empty()) return {};
    return fmt::format(
        "{} of {} permits are free, but {} is ahead in the queue; if it is stopped, resume it",
        status.free(), *status.limit, who(status.waiting.front().owner));
  } catch (...) {
    return {};
  }
}

bool WaitingNote::is_wanted() noexcept { return !is_quiet() && ::isatty(STDERR_FILENO) != 0; }

namespace {

/// Returns what is known of the holder, or why the store is out of reach.
std::string remark(LockManager& locks, const std::string& name) {
  try {
    const auto holder = words_about(locks.status(name, kLook));
    return holder.empty() ? "" : ", " + holder;
  } catch (const LockError& error) {
    if (error.code() != errc::unavailable) return {};
    const auto& cause = error.server_text();
    return fmt::format(": {}{}{}", error.code().message(), cause.empty() ? "" : ": ", cause);
  }
}

}  // namespace

WaitingNote::WaitingNote(LockManager& locks, const std::string& name, About about) {
  try {
    thread_ = start_thread([&locks, name, about] {
      try {
        const auto more = remark(locks, name);
        const bool is_cause = more.starts_with(":");
        if (about == About::lock || is_cause) complain(fmt::format("waiting for {}{}", name, more));
      } catch (...) {  // NOLINT(bugprone-empty-catch): then without a word
      }
    });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): then without a word
  }
}

WaitingNote::~WaitingNote() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace dlock::cli
