// SPDX-License-Identifier: Apache-2.0
//
// Formats of the keys beside a lock. A text begins with `v=1`. `%fence` is a bare number.
//
// A script that finds a newer format changes nothing there and answers {9, key, text, tag};
// calls.cpp makes the failure of it.
//
// The hash `%alive` has a field per waiter of the queue: `v=1 until=MS kind=KIND`. MS is the server
// time at which the waiter counts as dead. `WaiterKind` (rules/waiting.hpp) lists the kinds.
#pragma once

#include <string_view>

namespace dlock::redis {

/// is_newer returns whether a text has a newer format.
///
/// alive_until returns MS and KIND of a field of `%alive`. It returns 0 for a waiter without a
/// field: that one counts as dead. A waiter with a newer format counts as alive, with the kind
/// `newer`.
inline constexpr std::string_view kAliveLua = R"lua(
local function is_newer(text)
  local version = text and string.match(text, '^v=(%d+)')
  return version and tonumber(version) > 1
end
local function alive_until(text)
  local till, kind = string.match(text or '', '^v=1 until=(%d+) kind=(%a+)$')
  if till then return tonumber(till), kind end
  if is_newer(text) then return math.huge, 'newer' end
  return 0
end
)lua";

}  // namespace dlock::redis
