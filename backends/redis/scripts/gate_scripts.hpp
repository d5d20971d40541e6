// SPDX-License-Identifier: Apache-2.0
//
// The scripts under a plan's gate: those of scripts.cpp with the check inserted at `(gate)`, so
// that other calls do not pay for it. The gate is a note, the last of the keys. The last argument
// before the tag is the note's text as the caller knows it.
//
// Each request of a waiter checks the gate again, up to the grant. After a change of the gate no
// earlier waiter is granted the lock, wherever its queue place is. A waiter's place moves from key
// to key and may be forgotten, so no SCAN is sure to find it. Therefore a drain only has to find
// the holders. Each holder is in one key from its grant to its release.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "backends/redis/scripts/with_piece.hpp"

namespace dlock::redis {

// Arguments beside those of acquire: 7 record ('' for none), 8 waking (as in release)
// -> also {5, the gate's text, tag}
//
// A record is answered first, and a value that is not a string is an error. The script removes the
// claim's place. If the claim was notified, the script notifies the next waiter.
inline constexpr std::string_view kGateOfAcquireLua = R"lua(
if not held then redis.call('GET', KEYS[1]) end
if not held or string.sub(held, 1, 13) ~= 'dlock:record:' then
  local gate = redis.call('GET', KEYS[#KEYS]) or ''
  if gate ~= ARGV[#ARGV - 1] then
    redis.pcall('ZREM', KEYS[3], me)
    redis.pcall('HDEL', KEYS[4], me)
    local reserved = redis.call('MGET', KEYS[5])[1]
    if reserved and string.sub(reserved, -#me) == me then
      redis.call('DEL', KEYS[5])
      if not held then wake(KEYS[3], KEYS[4], KEYS[5], ARGV[8]) end
    end
    return {5, gate, tag}
  end
end
)lua";

// If the lock is free and the claim may not hold it: writes the record, with the token of the
// prevented grant. All waiters are notified.
inline constexpr std::string_view kSealAtOnceLua = R"lua(
  if ARGV[7] ~= '' then
    local record = string.gsub(ARGV[7], '{token}', token)
    redis.call('SET', KEYS[2], token, 'PX', memory)
    redis.call('SET', KEYS[1], 'dlock:record:' .. record)
    redis.pcall('ZREM', KEYS[3], me)
    redis.pcall('HDEL', KEYS[4], me)
    wake_all(KEYS[3], KEYS[5], string.match(ARGV[8], '^%S+'))
    return {4, record, '', tag}
  end
)lua";

// -> also {4, the gate's text, tag}
inline constexpr std::string_view kGateOfWriteLua = R"lua(
local gate = redis.call('GET', KEYS[#KEYS]) or ''
if gate ~= ARGV[#ARGV - 1] then return {4, gate, tag} end
)lua";

// KEYS lock queue alive; ARGV tag -> {1 somebody holds it or waits | 0 nobody, or a record, tag}
//
// A replica's answer may be old, so the script makes a write, which a replica refuses.
inline constexpr std::string_view kClaimed = R"lua(
redis.call('HDEL', KEYS[3], '')
local kind = redis.call('TYPE', KEYS[1])
kind = kind.ok or kind
local claimed = kind ~= 'none' or #redis.call('ZRANGE', KEYS[2], 0, 0) > 0
if kind == 'string' and string.sub(redis.call('GET', KEYS[1]), 1, 13) == 'dlock:record:' then
  claimed = false
end
return {claimed and 1 or 0, ARGV[1]}
)lua";

// KEYS fence...; ARGV tag -> {0, the highest of them and the clock, tag}; writes nothing
//
// A forgotten token is below the clock.
inline constexpr std::string_view kHighest = R"lua(
local clock = redis.call('TIME')
local top = clock[1] * 1000000 + clock[2]
for _, fence in ipairs(KEYS) do
  local last = redis.call('GET', fence) or '0'
  if is_newer(last) then return {9, fence, last, ARGV[1]} end
  top = math.max(top, tonumber(last) or 0)
end
return {0, string.format('%.0f', top), ARGV[1]}
)lua";

inline std::string write_under_gate(std::string script) {
  return with_piece(std::move(script), "-- (gate)\n", kGateOfWriteLua);
}

inline std::string acquire_under_gate(std::string script) {
  auto checked = with_piece(std::move(script), "-- (gate)\n", kGateOfAcquireLua);
  return with_piece(std::move(checked), "-- (seal)\n", kSealAtOnceLua);
}

}  // namespace dlock::redis
