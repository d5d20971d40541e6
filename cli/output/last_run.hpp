// SPDX-License-Identifier: Apache-2.0
//
// Scheduled runs in words and in JSON.
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "dlock/schedule.hpp"

namespace dlock::cli {

/// `2026-11-26T02:30:00Z`.
std::string utc(std::chrono::milliseconds since_1970);

/// `succeeded (status 0), ended 2026-11-26T02:30:17Z`: how it went, by the store's clock.
std::string how_it_went(const RunRecord& run);

/// Why `name` is not run now: a sentence.
std::string words_for(const std::string& name, const RunRefusal& why, const std::string& holder);

/// null: there was none.
boost::json::value run_value(const std::optional<RunRecord>& run);

}  // namespace dlock::cli
