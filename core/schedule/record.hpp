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
/// Empty: it is none, or of a later version.
std::optional<RunRecord> parse_run(std::string_view text);

/// The key of a name's note; with the lock names' rules, of which it takes 5 bytes.
std::string run_key(const std::string& name);

}  // namespace dlock::core
