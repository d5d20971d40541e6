// SPDX-License-Identifier: Apache-2.0
//
// The words of `require`, and what of a store's capabilities each asks for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/parsed.hpp"
#include "dlock/capabilities.hpp"

namespace dlock::core {

/// Reads one requirement, or a list with commas: `exclusive,fair`.
Parsed<std::vector<std::string>> parse_requirements(std::string_view text);

/// `requirement` is one of the words.
bool meets(const Capabilities& capabilities, std::string_view requirement);
/// Returns the property of a store that does not meet it, for an error: `exclusive locks only`.
std::string_view offered_instead(const Capabilities& capabilities, std::string_view requirement);

}  // namespace dlock::core
