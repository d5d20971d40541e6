// SPDX-License-Identifier: Apache-2.0
//
// Reads a semaphore's text for people. Its format is in scripts/permits_scripts.hpp. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/lock_status.hpp"

namespace dlock::redis {

/// The beginning of such a text, before the number of its format.
inline constexpr std::string_view kPermitsStamp = "dlock:permits v=";

/// Returns the status at `now`, server time in ms. Empty: another program's text. `lock_delay`
/// follows a holder's lease.
std::optional<SemaphoreStatus> read_permits(std::string name, std::string_view text,
                                            std::int64_t now, std::chrono::milliseconds lock_delay);

}  // namespace dlock::redis
