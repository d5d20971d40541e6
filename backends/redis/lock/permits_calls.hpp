// SPDX-License-Identifier: Apache-2.0
//
// Builds the calls of the semaphore scripts for a claim.
#pragma once

#include "backends/redis/lock/claim.hpp"
#include "backends/redis/wire/calls.hpp"

namespace dlock::redis {

ScriptCall acquire_permits_call(const KeyClaim& claim, std::chrono::milliseconds poll,
                                std::chrono::milliseconds lock_delay, std::uint64_t until);
ScriptCall renew_permits_call(const KeyClaim& claim, std::chrono::milliseconds lock_delay);
ScriptCall release_permits_call(const KeyClaim& claim);

}  // namespace dlock::redis
