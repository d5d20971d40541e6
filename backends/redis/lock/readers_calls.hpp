// SPDX-License-Identifier: Apache-2.0
//
// Builds the calls of the reader scripts for a claim, where they differ from a writer's.
#pragma once

#include "backends/redis/lock/claim.hpp"
#include "backends/redis/wire/calls.hpp"

namespace dlock::redis {

/// Whether a renewal makes a writer a reader.
enum class StepDown { no, yes };

ScriptCall renew_reader_call(const KeyClaim& claim, std::chrono::milliseconds kept_for,
                             StepDown down);

/// Returns a renewal with that script.
ScriptCall renew_call(const Script& script, const KeyClaim& claim,
                      std::chrono::milliseconds lock_delay);

}  // namespace dlock::redis
