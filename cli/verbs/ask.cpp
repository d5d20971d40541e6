// SPDX-License-Identifier: Apache-2.0
//
// `dlock break --ask`: the holder is asked for its lock; with --within the lock is broken if it is
// not given back by then.
#include <fmt/format.h>

#include <algorithm>

#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/output/text.hpp"
#include "cli/process/wake.hpp"
#include "cli/verbs/commands.hpp"
#include "dlock/clock.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::ends_a_wait;
using program::Exit;
using program::print_line;
using program::signal_status;
using program::Signals;
using program::status;

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookEach{200};
constexpr std::chrono::seconds kTellEach{5};

const char* words_for(const std::optional<bool>& heard) {
  if (!heard) return "whether it listens is not known";
  return *heard ? "it listens" : "nobody listens for that there";
}

void tell(const Arguments& arguments, const AskedLock& asked, const std::string& words) {
  print_line(arguments.json ? to_json(asked) : words);
}

bool is_held_with(const LockStatus& now, std::uint64_t token) {
  if (!now.held) return false;
  if (now.token == token) return true;
  return std::any_of(now.readers.begin(), now.readers.end(),
                     [token](const SharedHolder& reader) { return reader.token == token; });
}

enum class Wait { given_back, over, interrupted };

/// Waits until the holder has released the lock, or --within is over.
Wait wait_for_release(LockManager& locks, const Arguments& arguments, std::uint64_t token,
                      Signals& signals, int& interrupted_by) {
  const auto until = BoottimeClock::now() + *arguments.within;
  auto tell_at = BoottimeClock::now() + std::chrono::seconds(1);
  while (is_held_with(locks.status(arguments.name), token)) {
    const auto now = BoottimeClock::now();
    if (now >= until) return Wait::over;
    if (now >= tell_at && !arguments.quiet) {
      complain(fmt::format("{}: asked; it is broken in {} if it is not given back", arguments.name,
                           rounded(std::chrono::duration_cast<milliseconds>(until - now))));
      tell_at = now + kTellEach;
    }
    wait_for({signals.descriptor()}, std::min<Duration>(kLookEach, until - now));
    while (const auto signal = signals.next()) {
      if (!ends_a_wait(signal->number)) continue;
      interrupted_by = signal->number;
      return Wait::interrupted;
    }
  }
  return Wait::given_back;
}

}  // namespace

int ask_for_lock(LockManager& locks, const Arguments& arguments, Signals& signals) {
  const auto meant = arguments.token == 0 ? std::nullopt : std::optional(arguments.token);
  const auto asked = locks.ask(arguments.name, meant, arguments.within);
  tell(arguments, {"asked", arguments.name, asked.token, asked.heard},
       fmt::format("{}: asked the holder with token {}; {}", arguments.name,
                   asked.token ? fmt::format("{}", *asked.token) : "-", words_for(asked.heard)));
  if (!arguments.within) return status(Exit::ok);
  const auto token = asked.token ? asked.token : locks.status(arguments.name).token;
  int interrupted_by = 0;
  const auto wait = token ? wait_for_release(locks, arguments, *token, signals, interrupted_by)
                          : Wait::given_back;
  if (wait == Wait::interrupted) return signal_status(interrupted_by);
  if (wait == Wait::over) return break_and_wait(locks, arguments, *token, signals);
  tell(arguments, {"gave_way", arguments.name, token, asked.heard},
       fmt::format("{}: given back", arguments.name));
  return status(Exit::ok);
}

}  // namespace dlock::cli
