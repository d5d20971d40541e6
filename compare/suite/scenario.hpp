// SPDX-License-Identifier: Apache-2.0
//
// The scenarios of compare/scenarios/, as they are in the program, and which of them a run takes.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "compare/suite/options.hpp"

namespace dlock::compare {

/// The scenarios of a file, by its name without ending: `speed`, `safety`, `pitfalls`.
boost::json::array scenarios(std::string_view file);

/// Whether the run takes it: what the user named, else all; a quick run those marked `quick`.
bool is_wanted(const Options& options, const boost::json::object& scenario);

/// The ids of those that a quick run takes no notice of, because nobody named them.
std::vector<std::string> left_out(const Options& options);

/// That there is none, the nearest that there is, and all.
std::string no_such(const char* what, std::string_view word, const std::vector<std::string>& known);

/// Throws NothingToMeasure for the id of a scenario or store that there is not.
void check_names(const Options& options);

/// `quick`, `standard`, `full`: the keys of what depends on it.
const char* to_string(Depth depth);

}  // namespace dlock::compare
