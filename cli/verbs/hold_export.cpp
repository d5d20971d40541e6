// SPDX-License-Identifier: Apache-2.0
//
// `dlock hold --export`: takes a lock for another process. Its text is all that standard output
// gets.
#include <fmt/format.h>

#include <algorithm>

#include "cli/output/text.hpp"
#include "cli/process/wake.hpp"
#include "cli/verbs/hold_export.hpp"
#include "dlock/clock.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::Exit;
using program::print_line;
using program::Signals;
using program::status;

namespace {

constexpr std::chrono::milliseconds kDefaultWithin{30'000};
/// How often the store is asked whether it was adopted.
constexpr std::chrono::milliseconds kLook{200};

/// The manager gives it back by itself only so much later: until then, one that is gone was
/// adopted.
constexpr std::chrono::milliseconds kGrace{2'000};

enum class Seen { exported, adopted, gone, broken };

/// As far as is known: a store that does not answer says nothing.
Seen look(LockManager& locks, const std::string& name, std::uint64_t token) {
  try {
    const auto found = locks.status(name);
    if (found.held && found.token == token) return found.broken ? Seen::broken : Seen::exported;
    return found.held ? Seen::adopted : Seen::gone;
  } catch (const LockError&) {
    return Seen::exported;
  }
}

bool is_told_to_end(Signals& signals) {
  while (const auto signal = signals.next()) {
    if (program::ends_a_wait(signal->number)) return true;
  }
  return false;
}

}  // namespace

int hold_export(LockManager& locks, const Arguments& arguments, LockHandle handle,
                Signals& signals) {
  const auto within = arguments.within.value_or(kDefaultWithin);
  const auto token = handle.token().value_or(0);
  const auto until = BoottimeClock::now() + within;
  try {
    print_line(handle.export_grant({.within = within + kGrace}));
  } catch (const program::OutputFailed&) {
    locks.close();  // without its text no process can adopt the grant
    throw;
  }
  bool is_broken = false;
  const auto has_changed_hands = [&] {
    const auto seen = look(locks, arguments.name, token);
    is_broken = seen == Seen::broken;
    const bool can_be_given_back = BoottimeClock::now() >= until + kGrace;
    return seen == Seen::adopted || (seen == Seen::gone && !can_be_given_back);
  };
  bool is_over = false;
  while (!is_over && !has_changed_hands() && !is_broken) {
    const auto left = std::max<Duration>(until - BoottimeClock::now(), Duration::zero());
    wait_for({signals.descriptor()}, std::min<Duration>(left, kLook));
    is_over = is_told_to_end(signals) || BoottimeClock::now() >= until;
  }
  const bool is_adopted = !is_broken && (!is_over || has_changed_hands());
  if (is_broken) {
    complain(fmt::format("{}: broken by an operator (see dlock status); no process can adopt it",
                         arguments.name));
    return status(Exit::lost);
  }
  if (is_adopted) return status(Exit::ok);
  locks.close();
  complain(fmt::format("{}: nobody adopted it, it was given back", arguments.name));
  return status(Exit::not_obtained);
}

}  // namespace dlock::cli
