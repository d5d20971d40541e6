// SPDX-License-Identifier: Apache-2.0
//
// Who else asks for a lock that is held: the acquire script tells a holder that wants to know, by
// the instance at the end of his owner's text. What it cannot tell, this one finds.
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
