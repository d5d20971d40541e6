// SPDX-License-Identifier: Apache-2.0
//
// The scripts under a plan's gate: those of scripts.cpp with the check put where they say `(gate)`,
// so that nobody else pays for it. The gate is a note, the last of the keys; the last argument
// before the tag is what the caller believes that it says.
//
// Who waits is asked again with each of its requests, up to the grant: after a turn nobody from
// before it is let in any more, whatever became of its place meanwhile (a waiter's place moves from
// key to key and may be forgotten: no SCAN could promise to see it). So the holders are all that a
// drain has to look for, and each is in one key from its grant to its release.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "backends/redis/scripts/with_piece.hpp"

namespace dlock::redis {

// Also of acquire: 7 record ('' for none), 8 waking (as of release)
// -> also {5, what the gate says, tag}
//
// A record is answered first, and what is no string is an error. Nothing is left behind, and if we
// were woken the next one is.
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

// Where the lock is free and the claim may not hold: the record, with the token that it would have
// had. Whoever waits is told.
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

// -> also {4, what the gate says, tag}
inline constexpr std::string_view kGateOfWriteLua = R"lua(
local gate = redis.call('GET', KEYS[#KEYS]) or ''
if gate ~= ARGV[#ARGV - 1] then return {4, gate, tag} end
)lua";

// KEYS lock queue alive; ARGV tag -> {1 somebody holds it or waits | 0 nobody, or a record, tag}
//
// What a replica answers may be old: it refuses the writing of nothing.
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
// A token that is no longer remembered is below the clock.
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
