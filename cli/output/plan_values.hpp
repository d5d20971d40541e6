// SPDX-License-Identifier: Apache-2.0
//
// What the output of both kinds of plan is made from.
#pragma once

#include <boost/json/array.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace dlock::cli {

boost::json::array array_of(const std::vector<std::string>& texts);

/// `9500ms`; of ten seconds and more, whole ones: `3m20s`.
std::string age_text(std::int64_t milliseconds);

}  // namespace dlock::cli
