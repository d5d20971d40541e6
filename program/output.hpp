// SPDX-License-Identifier: Apache-2.0
//
// Where dlock writes: standard output is data, standard error is for people.
#pragma once

#include <string>
#include <string_view>

namespace dlock::program {

/// Thrown when nobody reads standard output any more. That is success: `dlock list | head -1`.
struct OutputClosed {};

/// Thrown when standard output takes no more for another reason: a full disk.
struct OutputFailed {
  int error = 0;  ///< errno
};

/// Writes the text and a newline at once, unbuffered. Throws OutputClosed on a broken pipe, else
/// OutputFailed.
void print_line(std::string_view text);

/// For a terminal: control bytes as `\x0a`. Names and owners come from others.
std::string printable(std::string_view text);

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
