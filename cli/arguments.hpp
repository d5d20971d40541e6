// SPDX-License-Identifier: Apache-2.0
//
// The command line as plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dlock/schedule.hpp"
#include "program/parse.hpp"

namespace dlock::cli {

enum class Verb {
  run,
  hold,
  status,
  list,
  break_lock,
  doctor,
  migrate_plan,
  migrate_start,
  migrate_status,
  migrate_advance,
  migrate_rollback,
  migrate_finish,
  semaphore_set,
  semaphore_show,
  compare
};
enum class OnLost { terminate, warn };

struct Arguments {
  using Milliseconds = std::chrono::milliseconds;

  Verb verb = Verb::status;
  std::string config_file;
  std::string store_url;

  std::string name;  ///< of `list`: the prefix
  bool json = false;
  bool quiet = false;

  std::optional<Milliseconds> wait;
  std::optional<Milliseconds> lease;
  bool shared = false;
  std::optional<std::uint32_t> permits;  ///< of a semaphore; empty: a lock
  std::optional<std::uint32_t> limit;    ///< how many it has; empty: as the store says
  std::optional<int> conflict_exit_code;
  OnLost on_lost = OnLost::terminate;
  std::optional<Milliseconds> kill_after;
  std::vector<std::string> command;  ///< with verb `compare`: the words of dlock-compare
  bool hide_command = false;
  bool nested = false;
  bool leader = false;
  std::optional<Milliseconds> retry;        ///< of a leader
  std::optional<Milliseconds> at_most_for;  ///< of a scheduled run: makes it one
  std::optional<Milliseconds> at_least_for;
  std::optional<Milliseconds> every;
  std::optional<Milliseconds> offset;
  std::optional<Milliseconds> early;
  bool again = false;
  bool retry_failed = false;

  std::optional<Milliseconds> max_hold;
  std::optional<std::uint32_t> max_queue;
  std::optional<Milliseconds> head_start;
  std::optional<Milliseconds> progress_every;
  int on_revoke = 0;  ///< the signal that the command gets; 0: it is not told

  std::string adopt;  ///< a file with the text of an exported grant, `-`: standard input
  bool exports = false;

  bool ask = false;
  bool now = false;                    ///< `break` frees the lock at once
  std::string reason;                  ///< why the lock is broken
  std::optional<Milliseconds> within;  ///< of `ask`, and of `exports`

  std::optional<Milliseconds> hold_for;
  std::uint64_t token = 0;
  bool of_semaphore = false;  ///< of `break`: permits, not the lock of that name
  std::string holder;         ///< likewise: their holder's id, instead of a token

  std::string plan;
  std::vector<std::string> names;  ///< of a plan
  bool all = false;
  bool target_gone = false;
  bool withdraw = false;
  bool yes = false;  ///< of migrate: also with programs that do not take part
  std::optional<Milliseconds> max_lease;
  std::optional<Milliseconds> gate_lease;
  bool legacy_gone = false;
  std::string at;  ///< of `start`: `S` or `T`; empty: no gate is restored
};

/// Of `run` with --at-most-for.
ScheduleOptions schedule_options(const Arguments& arguments);

/// Arguments, or the text that ends the program.
struct ParsedArguments {
  std::optional<Arguments> arguments;
  program::ParseEnd end;
};

/// Does not exit, print or read anything else.
ParsedArguments parse_arguments(int argc, const char* const* argv);

}  // namespace dlock::cli
