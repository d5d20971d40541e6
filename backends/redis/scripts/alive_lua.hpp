// SPDX-License-Identifier: Apache-2.0
//
// The hash `%alive`: one field per waiter of the queue, `until=MS kind=KIND`. MS is the server time
// at which the waiter counts as dead. `WaiterKind` (rules/waiting.hpp) lists the kinds.
#pragma once

#include <string_view>

namespace dlock::redis {

/// Returns MS and KIND of a field. Returns 0 for a waiter without one: it counts as dead.
inline constexpr std::string_view kAliveLua = R"lua(
local function alive_until(text)
  local till, kind = string.match(text or '', '^until=(%d+) kind=(%a+)$')
  return tonumber(till or 0), kind
end
)lua";

}  // namespace dlock::redis
