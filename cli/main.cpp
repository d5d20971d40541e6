// SPDX-License-Identifier: Apache-2.0
//
// The dlock command: one lock for many processes, on the store of your choice.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

#include "cli/arguments.hpp"
#include "cli/output/hide_password.hpp"
#include "cli/output/text.hpp"
#include "cli/process/child.hpp"
#include "cli/verbs/commands.hpp"
#include "dlock/error.hpp"
#include "program/exit_codes.hpp"
#include "program/output.hpp"
#include "program/signals.hpp"

namespace {

using dlock::cli::Arguments;
using dlock::cli::Verb;
using dlock::program::Exit;
using dlock::program::status;

/// A number of 0 to 2 that is free would be used for the next file opened, and messages would be
/// written into it. Writing to a stdout that was closed still fails.
void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    ::open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR);
  }
}

bool is_null_device(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 && S_ISCHR(info.st_mode) &&
         info.st_rdev == ::makedev(1, 3);
}

int dispatch(const Arguments& arguments, bool stdin_ends_hold, const std::string& command_line) {
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
      return dlock::cli::compare(arguments, command_line);
    case Verb::compare_report:
      return dlock::cli::compare_report(arguments);
    case Verb::compare_worker:
      return dlock::cli::compare_worker();
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

int tell_output_failed(const dlock::program::OutputFailed& failed) {
  dlock::program::complain(failed.error == ETIMEDOUT
                               ? "standard output is full and is not read"
                               : fmt::format("standard output cannot be written: {}",
                                             std::generic_category().message(failed.error)));
  return status(Exit::output);
}

/// Throws OutputFailed.
int outcome(const Arguments& arguments, bool stdin_ends_hold, const std::string& command_line) {
  try {
    return dispatch(arguments, stdin_ends_hold, command_line);
  } catch (const dlock::LockError& error) {
    dlock::program::complain(explanation(error));
    return status(dlock::program::exit_of(error.code()));
  } catch (const std::exception& error) {
    dlock::program::complain(error.what());
    return status(Exit::unavailable);
  }
}

int guarded(const Arguments& arguments, bool stdin_ends_hold, const std::string& command_line) {
  try {
    const int code = outcome(arguments, stdin_ends_hold, command_line);
    // `hold` and a verb that a signal has ended do not wait for their reader.
    if (arguments.verb != Verb::hold && code < status(Exit::signal_base)) {
      dlock::program::finish_output();
    }
    return code;
  } catch (const dlock::program::OutputFailed& failed) {
    return tell_output_failed(failed);
  }
}

std::string joined(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) line += (i == 0 ? "" : " ") + std::string(argv[i]);
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  dlock::cli::remember_open_descriptors();
  const bool stdin_open = ::fcntl(STDIN_FILENO, F_GETFD) >= 0;
  occupy_standard_descriptors();
  dlock::program::ignore_broken_pipes();
  try {
    auto parsed = dlock::cli::parse_arguments(argc, argv);
    if (parsed.arguments && parsed.arguments->quiet) dlock::program::be_quiet();
    if (dlock::cli::hide_passwords(argc, argv)) {
      dlock::program::warn(
          "a password on the command line: others on this machine may have seen it; write "
          "the URL into DLOCK_STORE, or use --config with password_env or password_file");
    }
    if (parsed.arguments) {
      return guarded(*parsed.arguments, stdin_open && !is_null_device(STDIN_FILENO),
                     joined(argc, argv));
    }
    if (!parsed.complaint.empty()) {
      dlock::program::complain(parsed.complaint);
      return status(Exit::usage);
    }
    while (!parsed.output.empty() && parsed.output.back() == '\n') parsed.output.pop_back();
    dlock::program::print_line(parsed.output);
    dlock::program::finish_output();
  } catch (const dlock::program::OutputFailed& failed) {
    return tell_output_failed(failed);
  } catch (const std::exception& error) {
    dlock::program::complain(error.what());
    return status(Exit::usage);
  }
  return status(Exit::ok);
}
