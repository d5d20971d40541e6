// SPDX-License-Identifier: Apache-2.0
//
// `dlock run --leader`: the command runs while we lead.
#include <fmt/format.h>

#include <random>

#include "cli/acquire.hpp"
#include "cli/process/wake.hpp"
#include "cli/verbs/run_command.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::ends_a_wait;
using program::Exit;
using program::signal_status;
using program::Signals;
using program::status;

namespace {

using namespace std::chrono_literals;

/// Up to a half more, so that not all who have lost their store come at once.
Duration pause_of(const Arguments& arguments) {
  const Duration pause = arguments.retry.value_or(2s);
  return pause + pause / 2 * static_cast<std::int64_t>(std::random_device{}() % 1000) / 1000;
}

/// The exit status, if a signal ends it.
std::optional<int> pause_to_retry(const Arguments& arguments, Signals& signals) {
  const auto until = BoottimeClock::now() + pause_of(arguments);
  while (true) {
    const auto left = until - BoottimeClock::now();
    if (left <= Duration::zero()) return std::nullopt;
    wait_for({signals.descriptor()}, left);
    while (const auto signal = signals.next()) {
      if (ends_a_wait(signal->number)) return signal_status(signal->number);
    }
  }
}

}  // namespace

int run_leader(const Arguments& arguments, LockManager& locks, const std::string& id,
               Signals& signals, ProgressFile* progress) {
  while (true) {
    auto [handle, failed] = acquire(locks, arguments, signals);
    if (handle) {
      const auto ran = run_command(arguments, handle, id, signals, progress);
      const error_code released = handle.release();
      if (!ran.has_started) return ran.status;
      if (!ran.was_lost && released != errc::lock_lost) return ran.status;
      const int lost = tell_lost(arguments, ran);
      if (ran.was_told_to_end) return lost;
    } else if (failed != status(Exit::unavailable)) {
      return failed;
    }
    complain(fmt::format("{}: standing again", arguments.name));
    if (const auto ended = pause_to_retry(arguments, signals)) return *ended;
  }
}

}  // namespace dlock::cli
