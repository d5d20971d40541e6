// SPDX-License-Identifier: Apache-2.0
//
// The dlock command: one lock for many processes, on the store of your choice.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <exception>
#include <string>

#include "cli/arguments.hpp"
#include "cli/output/text.hpp"
#include "cli/process/child.hpp"
#include "cli/verbs/commands.hpp"
#include "dlock/error.hpp"
#include "program/exit_codes.hpp"
#include "program/hide_password.hpp"
#include "program/output.hpp"
#include "program/signals.hpp"

namespace {

using dlock::cli::Arguments;
using dlock::cli::Verb;
using dlock::program::Exit;
using dlock::program::status;

bool is_null_device(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 && S_ISCHR(info.st_mode) &&
         info.st_rdev == ::makedev(1, 3);
}

int dispatch(const Arguments& arguments, bool stdin_ends_hold) {
  switch (arguments.verb) {
    case Verb::run:
      return dlock::cli::run(arguments);
    case Verb::hold:
      return dlock::cli::hold(arguments, stdin_ends_hold);
    case Verb::status:
      return dlock::cli::show_status(arguments);
    case Verb::list:
      return dlock::cli::list(arguments);
    case Verb::break_lock:
      return dlock::cli::break_lock(arguments);
    case Verb::doctor:
      return dlock::cli::doctor(arguments);
    case Verb::semaphore_set:
      return dlock::cli::set_semaphore(arguments);
    case Verb::semaphore_show:
      return dlock::cli::show_semaphore(arguments);
    case Verb::migrate_plan:
    case Verb::migrate_start:
    case Verb::migrate_status:
    case Verb::migrate_advance:
    case Verb::migrate_rollback:
    case Verb::migrate_finish:
      return dlock::cli::migrate(arguments);
    case Verb::compare:
      return dlock::cli::compare(arguments.command);
  }
  return status(Exit::usage);
}

std::string explanation(const dlock::LockError& error) {
  // A complaint about the configuration says it all, and begins with file and line.
  if (error.code() == dlock::errc::config_invalid && error.lock().empty() &&
      !error.server_text().empty()) {
    return error.store().empty()
               ? error.server_text()
               : fmt::format("{} (store '{}')", error.server_text(), error.store());
  }
  return dlock::cli::explanation(error.code(), {error.lock(), error.store(), error.server_text()});
}

/// Throws OutputFailed.
int outcome(const Arguments& arguments, bool stdin_ends_hold) {
  try {
    return dispatch(arguments, stdin_ends_hold);
  } catch (const dlock::LockError& error) {
    dlock::program::complain(explanation(error));
    return status(dlock::program::exit_of(error.code()));
  } catch (const std::exception& error) {
    dlock::program::complain(error.what());
    return status(Exit::unavailable);
  }
}

int guarded(const Arguments& arguments, bool stdin_ends_hold) {
  try {
    const int code = outcome(arguments, stdin_ends_hold);
    // `hold` and a verb that a signal has ended do not wait for their reader.
    if (arguments.verb != Verb::hold && code < status(Exit::signal_base)) {
      dlock::program::finish_output();
    }
    return code;
  } catch (const dlock::program::OutputFailed& failed) {
    return dlock::program::report_failed_output(failed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  dlock::cli::remember_open_descriptors();
  const bool stdin_open = ::fcntl(STDIN_FILENO, F_GETFD) >= 0;
  dlock::program::occupy_standard_descriptors();
  dlock::program::ignore_broken_pipes();
  try {
    auto parsed = dlock::cli::parse_arguments(argc, argv);
    if (parsed.arguments && parsed.arguments->quiet) dlock::program::be_quiet();
    // dlock-compare still needs the passwords. It hides them.
    const bool executes_compare = parsed.arguments && parsed.arguments->verb == Verb::compare;
    if (!executes_compare) dlock::program::hide_passwords(argc, argv);
    if (!parsed.arguments) return dlock::program::print(parsed.end);
    return guarded(*parsed.arguments, stdin_open && !is_null_device(STDIN_FILENO));
  } catch (const dlock::program::OutputFailed& failed) {
    return dlock::program::report_failed_output(failed);
  } catch (const std::exception& error) {
    dlock::program::complain(error.what());
    return status(Exit::usage);
  }
}
