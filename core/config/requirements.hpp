// SPDX-License-Identifier: Apache-2.0
//
// The words of `require`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/parsed.hpp"

namespace dlock::core {

/// From a word or a list with commas: `exclusive,fair`.
Parsed<std::vector<std::string>> parse_requirements(std::string_view text);

}  // namespace dlock::core
