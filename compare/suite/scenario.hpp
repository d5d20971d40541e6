// SPDX-License-Identifier: Apache-2.0
//
// The scenarios of compare/scenarios/, as they are in the program.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string_view>

#include "compare/suite/options.hpp"

namespace dlock::compare {

/// The scenarios of a file, by its name without ending: `speed`, `safety`, `pitfalls`.
boost::json::array scenarios(std::string_view file);

/// Whether the user asked for it.
bool is_wanted(const Options& options, std::string_view scenario);

/// `quick`, `standard`, `full`: the keys of what depends on it.
const char* to_string(Depth depth);

}  // namespace dlock::compare
