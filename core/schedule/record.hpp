// SPDX-License-Identifier: Apache-2.0
//
// A run as the text of a note: a version, then a line for each value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dlock/schedule.hpp"

namespace dlock::core {

std::string to_text(const RunRecord& record);
/// Returns nullopt unless `text` is a text of to_text().
std::optional<RunRecord> parse_run(std::string_view text);
/// Returns the refusal of a run that a newer dlock wrote. Empty: the text is not newer.
std::string newer_run(std::string_view text);

/// The key of a name's note; with the lock names' rules, of which it takes 5 bytes.
std::string run_key(const std::string& name);

}  // namespace dlock::core
