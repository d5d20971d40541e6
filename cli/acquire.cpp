// SPDX-License-Identifier: Apache-2.0
#include "cli/acquire.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <optional>

#include "cli/exit_codes.hpp"
#include "cli/open.hpp"
#include "cli/output.hpp"
#include "cli/wake.hpp"
#include "core/config/duration.hpp"

namespace dlock::cli {

namespace {

/// Shared with the completion handler, which may run on another thread.
struct Outcome {
  Wake wake;
  Diagnostics diagnostics;
  std::mutex mutex;
  std::optional<std::pair<error_code, LockHandle>> result;
};

std::optional<std::pair<error_code, LockHandle>> take(Outcome& outcome) {
  const std::scoped_lock guard(outcome.mutex);
  return std::exchange(outcome.result, std::nullopt);
}

std::string explanation(const error_code& error, const Diagnostics& diagnostics) {
  if (diagnostics.server_text.empty()) return error.message();
  return fmt::format("{}: {}", error.message(), diagnostics.server_text);
}

int tell(const error_code& error, const Outcome& outcome, const Arguments& arguments) {
  complain(fmt::format("{}: {}", arguments.name, explanation(error, outcome.diagnostics)));
  if (error == errc::timed_out && arguments.conflict_exit_code) {
    return *arguments.conflict_exit_code;
  }
  return status(exit_of(error));
}

}  // namespace

Acquired acquire(DistributedLock& lock, const Arguments& arguments, Signals& signals) {
  const auto outcome = std::make_shared<Outcome>();
  AcquireOptions options = acquire_options(arguments);
  options.diagnostics = &outcome->diagnostics;
  auto cancel = lock.start_acquire(options, [outcome](error_code error, LockHandle handle) {
    const std::scoped_lock guard(outcome->mutex);
    outcome->result.emplace(error, std::move(handle));
    outcome->wake.notify();
  });

  int ended_by = 0;
  while (true) {
    wait_for({signals.descriptor(), outcome->wake.descriptor()}, std::nullopt);
    while (const auto signal = signals.next()) {
      if (!ends_a_wait(signal->number)) continue;
      // Asked again while we clean up: the store will do it when our lease is over.
      if (ended_by != 0) ::_exit(signal_status(signal->number));
      ended_by = signal->number;
      cancel();
    }
    auto result = take(*outcome);
    if (!result) continue;
    auto& [error, handle] = *result;
    if (ended_by != 0) {
      if (handle) handle.release();
      return {LockHandle(), signal_status(ended_by)};
    }
    if (error) return {LockHandle(), tell(error, *outcome, arguments)};
    return {std::move(handle), 0};
  }
}

}  // namespace dlock::cli
