// SPDX-License-Identifier: Apache-2.0
//
// `dlock break --ask`: the holder is asked for its lock; with --within the lock is broken if it is
// not given back by then.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/open.hpp"
#include "cli/output/json.hpp"
#include "cli/output/text.hpp"
#include "cli/verbs/commands.hpp"
#include "dlock/clock.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"

namespace dlock::cli {

using program::complain;
using program::Exit;
using program::print_line;
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

/// False: the time is over, and he has it still.
bool gives_way(LockManager& locks, const Arguments& arguments, std::uint64_t token) {
  const auto until = BoottimeClock::now() + *arguments.within;
  auto tell_at = BoottimeClock::now() + std::chrono::seconds(1);
  while (is_held_with(locks.status(arguments.name), token)) {
    const auto now = BoottimeClock::now();
    if (now >= until) return false;
    if (now >= tell_at && !arguments.quiet) {
      complain(fmt::format("{}: asked; it is broken in {} if it is not given back", arguments.name,
                           rounded(std::chrono::duration_cast<milliseconds>(until - now))));
      tell_at = now + kTellEach;
    }
    std::this_thread::sleep_for(std::min<Duration>(kLookEach, until - now));
  }
  return true;
}

}  // namespace

int ask_for_lock(LockManager& locks, const Arguments& arguments) {
  const auto meant = arguments.token == 0 ? std::nullopt : std::optional(arguments.token);
  const auto asked = locks.ask(arguments.name, meant, arguments.within);
  tell(arguments, {"asked", arguments.name, asked.token, asked.heard},
       fmt::format("{}: asked the holder with token {}; {}", arguments.name,
                   asked.token ? fmt::format("{}", *asked.token) : "-", words_for(asked.heard)));
  if (!arguments.within) return status(Exit::ok);
  const auto token = asked.token ? asked.token : locks.status(arguments.name).token;
  if (!token || gives_way(locks, arguments, *token)) {
    tell(arguments, {"gave_way", arguments.name, token, asked.heard},
         fmt::format("{}: given back", arguments.name));
    return status(Exit::ok);
  }
  locks.evict(arguments.name, *token);
  if (arguments.json) {
    print_line(to_json(BrokenLock{arguments.name, *token}));
  } else {
    print_line(fmt::format("{}: taken from the holder with token {}", arguments.name, *token));
  }
  return status(Exit::ok);
}

}  // namespace dlock::cli
