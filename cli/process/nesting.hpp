// SPDX-License-Identifier: Apache-2.0
//
// `dlock run x -- dlock run x -- ...` would wait for itself forever. Each `run` writes what it
// holds into its command's environment; the store decides whether that is still so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/arguments.hpp"
#include "dlock/config.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/mode.hpp"

namespace dlock::cli {

/// The environment variable: one line for each lock that is held by a `run` around us.
inline constexpr const char* kHeldVariable = "DLOCK_HELD";

/// Which lock, on which store: a word without secrets; empty where no one lock can be named (no
/// route, a migration).
std::string lock_id(const Config& config, const std::string& name);

/// A `run` around this process that has written into the environment that it holds the lock.
struct OuterHold {
  std::int64_t pid = 0;                ///< pid of that `run` in its own namespace
  std::optional<std::uint64_t> token;  ///< of its grant; empty: the store has no tokens
  Mode mode = Mode::exclusive;
  Owner owner{};  ///< in the record of the store
};

/// Returns the `run` around this process that holds the lock `id` by the store's answer. Without an
/// entry in the environment the store is not asked. Throws LockError if the store does not answer.
std::optional<OuterHold> outer_hold(LockManager& locks, const std::string& id,
                                    const Arguments& arguments);

/// Whether `outer` covers what `arguments` ask for.
bool is_under(const OuterHold& outer, const Arguments& arguments);

/// Prints that the lock is held by the `run` around this process, and returns the exit status.
int refuse_nested(const OuterHold& outer, const Arguments& arguments);

/// Returns the variable's value for the command of this `run`: the present one with `held` added.
std::string held_with(const std::string& id, const LockHandle& held);

}  // namespace dlock::cli
