// SPDX-License-Identifier: Apache-2.0
//
// What dlock's exit status means: a contract that scripts depend on. The numbers are those of
// sysexits.h where it has one, and of the shells for a command that ended or did not start.
#pragma once

#include <array>
#include <string_view>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/error.hpp"

namespace dlock::program {

enum class Exit : int {
  ok = 0,
  contradicted = 1,
  migrate_waits = 3,
  migrate_refused = 4,
  usage = 64,
  foreign = 65,
  no_input = 66,
  unavailable = 69,
  out_of_memory = kOutOfMemoryStatus,
  output = 74,
  not_obtained = 75,
  lost = 76,
  overran = 77,
  config = 78,
  cannot_execute = 126,
  not_found = 127,
  signal_base = 128,
};

struct ExitMeaning {
  Exit code;
  std::string_view meaning;
};

/// For --help and the manual; a test compares docs/cli.md with it.
inline constexpr std::array<ExitMeaning, 17> kExitMeanings{{
    {Exit::ok, "done; of `run`: the command's own status"},
    {Exit::contradicted,
     "of `compare`: what was measured contradicts what a store declares, or could not be measured"},
    {Exit::migrate_waits,
     "of `migrate`: waits for a holder or a program, which is named; run it again"},
    {Exit::migrate_refused, "of `migrate`: refused, with the reason"},
    {Exit::usage, "wrong usage: an option, a lock name, an operation that this store has not"},
    {Exit::foreign,
     "what the store holds or answers cannot be used: another program's data in the lock's place, "
     "tokens that went back, a record of a newer dlock"},
    {Exit::no_input,
     "of `compare`: no such scenario, store, client or file, or nothing was measured"},
    {Exit::unavailable,
     "the store is out of reach: it did not answer within the wait, or failed after its last "
     "answer"},
    {Exit::out_of_memory,
     "memory ran out in the library's own work; the command of `run` was ended as well"},
    {Exit::output,
     "standard output could not be written, or nothing reads it; `hold` has released the lock"},
    {Exit::not_obtained,
     "not obtained in time: the store's last answer was that another client holds the lock or is "
     "ahead in the queue, and no failure was seen since; or run by another (or "
     "--conflict-exit-code); of `break`: not held with that token, or not free within --wait"},
    {Exit::lost, "the lock was lost while it was held"},
    {Exit::overran, "of `run`: --at-most-for was over, and the command was ended"},
    {Exit::config,
     "the configuration cannot be used, or the store cannot promise what `require` asks for"},
    {Exit::cannot_execute,
     "of `run`: the command cannot be executed; of `compare`: dlock-compare cannot be executed"},
    {Exit::not_found,
     "of `run`: the command was not found; of `compare`: dlock-compare is not installed"},
    {Exit::signal_base, "+ N: of `run`: signal N ended the command; else: signal N ended the wait"},
}};

constexpr int status(Exit code) { return static_cast<int>(code); }
constexpr int signal_status(int signal) { return status(Exit::signal_base) + signal; }

/// The status that tells of a failed operation.
Exit exit_of(const error_code& error) noexcept;

}  // namespace dlock::program
