// SPDX-License-Identifier: Apache-2.0
//
// Where dlock writes: standard output is data, standard error is for people.
#pragma once

#include <string>
#include <string_view>

namespace dlock::cli {

/// Thrown when nobody reads standard output any more. That is success: `dlock list | head -1`.
struct OutputClosed {};

/// Writes the text and a newline at once, unbuffered. Throws OutputClosed on a broken pipe.
void print_line(std::string_view text);

/// For a terminal: control bytes as `\x0a`. Names and owners come from others.
std::string printable(std::string_view text);

/// A line `dlock: text` on standard error, printable. Never throws. Any thread.
void complain(std::string_view text) noexcept;

/// A line of JSON there, for scripts that asked for it. Never throws.
void complain_json(const std::string& object) noexcept;

}  // namespace dlock::cli
