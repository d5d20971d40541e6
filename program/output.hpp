// SPDX-License-Identifier: Apache-2.0
//
// Where dlock writes: standard output is data, standard error is for people.
#pragma once

#include <string>
#include <string_view>

namespace dlock::program {

/// Thrown when standard output cannot be written: a full disk, a pipe without a reader.
struct OutputFailed {
  int error = 0;  ///< errno; ETIMEDOUT: the pipe is full and is not read
};

/// Opens /dev/null for each standard descriptor that is closed. Otherwise the next file opened
/// would get its number, and messages would be written into that file. Writing to a standard output
/// that was closed still fails.
void occupy_standard_descriptors();

/// Prints why standard output failed. Returns the exit status.
int report_failed_output(const OutputFailed& failed);

/// Writes the text and a newline. A full pipe delays the caller 100 ms at most: the line stays
/// queued then. Throws OutputFailed if this write or an earlier one failed.
void print_line(std::string_view text);

/// Blocks until the lines are written, however long their reader takes. SIGHUP, SIGINT, SIGQUIT and
/// SIGTERM end the process meanwhile, so the caller must hold nothing. Throws OutputFailed.
void finish_output();

/// Returns the errno of a write that failed, ETIMEDOUT while a line is queued, else 0.
int output_error() noexcept;

/// Returns false when standard output is a pipe or socket that no process reads any more, or a
/// terminal that has hung up.
bool output_has_reader() noexcept;

/// For a terminal: control bytes as `\x0a`. Names and owners come from others.
std::string printable(std::string_view text);

/// Writes the text to standard error as it is. A full pipe delays the caller 100 ms, and only once
/// while it stays full. What is not taken is dropped. Any thread.
void write_message(std::string_view text) noexcept;

/// A line `dlock: text` on standard error, printable. Never throws. Any thread.
void complain(std::string_view text) noexcept;

/// The same with `warning: ` before it, if warnings are wanted.
void warn(std::string_view text) noexcept;

/// `--quiet`: from now on no warnings. Once, before there are threads.
void be_quiet() noexcept;
bool is_quiet() noexcept;

/// A line of JSON there, for scripts that asked for it. Never throws.
void complain_json(const std::string& object) noexcept;

}  // namespace dlock::program
