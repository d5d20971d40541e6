// SPDX-License-Identifier: Apache-2.0
//
// `dlock run --at-most-for`: one of many that come at about the same time runs the command.
#include <fmt/format.h>

#include "cli/output/last_run.hpp"
#include "cli/output/waiting_note.hpp"
#include "cli/verbs/run_command.hpp"
#include "dlock/schedule.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::Exit;
using program::printable;
using program::Signals;
using program::status;
using program::warn;

int run_scheduled(const Arguments& arguments, LockManager& locks, const std::string& id,
                  Signals& signals) {
  Schedule schedule(locks, arguments.name, schedule_options(arguments));
  RunRefusal why;
  auto run = schedule.try_begin(&why);
  if (!run) {
    const auto holder =
        why.reason == RunRefusal::Reason::busy ? holder_of(locks, arguments.name) : std::string();
    complain(printable(words_for(arguments.name, why, holder)));
    return arguments.conflict_exit_code.value_or(status(Exit::not_obtained));
  }
  const auto over_at = BoottimeClock::now() + run->remaining();
  const auto ran = run_command(arguments, run->handle(), id, signals, nullptr, over_at);
  const auto ended = run->finish(ran.status == 0 && !ran.has_overrun, ran.status);
  if (!ran.has_started) return ran.status;
  if (ran.was_lost || ended == errc::lock_lost) return tell_lost(arguments, ran);
  if (ended) {
    warn(
        fmt::format("{}: how the run ended could not be written ({}): it counts as one that has "
                    "died",
                    arguments.name, ended.message()));
  }
  return ran.has_overrun ? status(Exit::overran) : ran.status;
}

}  // namespace dlock::cli
