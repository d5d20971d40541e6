// SPDX-License-Identifier: Apache-2.0
//
// Counts the other clients that ask for a held lock. The acquire script notifies a listening holder
// through the instance at the end of the owner's text. This script finds the requests that it could
// not notify.
#pragma once

#include <string_view>

namespace dlock::redis {

// KEYS queue; ARGV tag -> {how many wait, tag}; writes nothing
inline constexpr std::string_view kAsked = R"lua(
local waiting = redis.pcall('ZCARD', KEYS[1])
if type(waiting) ~= 'number' then waiting = 0 end
return {waiting, ARGV[1]}
)lua";

}  // namespace dlock::redis
