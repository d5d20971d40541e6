// SPDX-License-Identifier: Apache-2.0
//
// What the text of a semaphore says (scripts/permits_scripts.hpp has the format), for people. Pure.
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

/// As of `now`, server time in ms. Empty: it is another program's text. `lock_delay` comes after a
/// holder's lease.
std::optional<SemaphoreStatus> read_permits(std::string name, std::string_view text,
                                            std::int64_t now, std::chrono::milliseconds lock_delay);

}  // namespace dlock::redis
