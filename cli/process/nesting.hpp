// SPDX-License-Identifier: Apache-2.0
//
// `dlock run x -- dlock run x -- ...` would wait for itself for ever. Each `run` leaves word in its
// command's environment of what it holds.
#pragma once

#include <optional>
#include <string>

#include "cli/arguments.hpp"
#include "dlock/config.hpp"
#include "dlock/mode.hpp"

namespace dlock::cli {

/// The environment variable: one line for each lock that is held by a `run` around us.
inline constexpr const char* kHeldVariable = "DLOCK_HELD";

/// Which lock, on which store: a word without secrets; empty where no one lock can be named (no
/// route, a migration).
std::string lock_id(const Config& config, const std::string& name);

/// Has said that the lock is held by a `run` around us, and the exit status; empty: it is not.
std::optional<int> refuse_nested(const Config& config, const Arguments& arguments);

/// The `run` around us that holds the lock and still lives.
struct OuterHold {
  int pid = 0;  ///< 0: there is none
  Mode mode = Mode::exclusive;
};
OuterHold outer_hold(const std::string& id);
/// What was asked for is held with that already.
bool is_under(const OuterHold& outer, const Arguments& arguments);

/// The variable's value for the command of this `run`: what it was, and `id`.
std::string held_with(const std::string& id, Mode mode);

}  // namespace dlock::cli
