// SPDX-License-Identifier: Apache-2.0
//
// With `fair=true`: acquire with the turn inserted at `(turn)`. A free lock, such as one whose
// holder was lost, is not for the first client that asks. It is granted to the first waiter that
// can be notified, as by a release.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "backends/redis/scripts/with_piece.hpp"

namespace dlock::redis {

// A waiter is identified by its arrival, also while it is not in the queue: a waiter that was
// dropped with its process is queued again with that arrival. Dead waiters are dropped on the way.
inline constexpr std::string_view kComesBeforeLua = R"lua(
local function comes_before(queue, alive, me, arrival, now)
  for _ = 1, 1000 do
    local head = redis.call('ZRANGE', queue, 0, 0)[1]
    if not head or head == me then return false end
    if arrival ~= '' and tonumber(redis.call('ZSCORE', queue, head)) > tonumber(arrival) then
      return false
    end
    if alive_until(redis.call('HGET', alive, head)) > now then return true end
    redis.call('ZREM', queue, head)
    redis.call('HDEL', alive, head)
  end
  return true
end
)lua";

// Arguments beside those of acquire: 8 waking (as in release); 7 is the gate's
//
// A waiter that let its first try pass is stopped or dead, as at the end of acquire. If all waiters
// before the caller are dead, wake() may grant the lock to the caller; then the script returns that
// grant.
inline constexpr std::string_view kTurnLua = R"lua(
if not held and first ~= me and (not first or first_left <= 0) then
  if first then
    redis.call('DEL', KEYS[5])
    local process = string.sub(first, 1, 36)
    if process ~= string.sub(me, 1, 36) then drop(KEYS[3], KEYS[4], process) end
    first = false
  end
  if comes_before(KEYS[3], KEYS[4], me, arrival, now) then
    local trouble = wake(KEYS[3], KEYS[4], KEYS[5], ARGV[8], KEYS[1], KEYS[2])
    if is_newer(trouble) then return {9, KEYS[4], trouble, tag} end
    aside = redis.call('MGET', KEYS[2], KEYS[5], KEYS[1])
    held = aside[3]
    -- later than the wake counted it from
    clock = redis.call('TIME')
    us = clock[1] * 1000000 + clock[2]
    now = us / 1000
    first, first_left = first_try(aside[2], now)
    local colon = held and string.find(held, ':', 1, true)
    if colon and string.sub(held, colon + 1) == owner then
      local token = string.sub(held, 1, colon - 1)
      if (tonumber(token) or 0) > tonumber(ARGV[3]) then
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
        return {2, token, tag}
      end
    end
  end
end
)lua";

inline std::string acquire_in_turn(std::string script) {
  return with_piece(std::move(script), "-- (turn)\n", kTurnLua);
}

}  // namespace dlock::redis
