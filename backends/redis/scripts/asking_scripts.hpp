// SPDX-License-Identifier: Apache-2.0
//
// Asking a holder to release the lock, and the number of waiters before one. The key beside the
// lock has `v=1 owner id:` for a holder that listens, followed by the last request. It has `v=1
// ?owner id:` for a holder that was asked before it listened. A holder reads the key at each
// message and at each renewal.
#pragma once

#include <string_view>

namespace dlock::redis {

// KEYS ask; ARGV owner id, memory ms, tag -> {1, the request ('' none yet), tag}
inline constexpr std::string_view kListen = R"lua(
local asked = redis.call('GET', KEYS[1]) or ''
if is_newer(asked) then return {9, KEYS[1], asked, ARGV[3]} end
local ours = 'v=1 ' .. ARGV[1] .. ':'
if string.sub(asked, 1, #ours) == ours then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, string.sub(asked, #ours + 1), ARGV[3]}
end
local before = 'v=1 ?' .. ARGV[1] .. ':'
local text = string.sub(asked, 1, #before) == before and string.sub(asked, #before + 1) or ''
redis.call('SET', KEYS[1], ours .. text, 'PX', ARGV[2])
return {1, text, ARGV[3]}
)lua";

// KEYS lock ask; ARGV token ('' any), text, channel prefix, tag
// -> {1 listens | 4 does not, as far as is seen, value, tag} | {0 nobody holds it, tag}
//    | {3 a record stands there, tag} | {2 another token, value, tag}
//
// The text begins with the server's time, so that two requests differ. The request is kept also if
// the holder is not known to listen: it may be about to read the key for the first time. A reader
// has a separate key: ask with `%` and its owner's id. Without a token the request is for the first
// reader.
inline constexpr std::string_view kAsk = R"lua(
local tag = ARGV[#ARGV]
local held = redis.call('GET', KEYS[1])
if not held then return {0, tag} end
if string.sub(held, 1, 13) == 'dlock:record:' then return {3, tag} end
local clock = redis.call('TIME')
local readers, version = readers_in(held, clock[1] * 1000 + clock[2] / 1000)
if is_newer(version) then return {9, KEYS[1], version, tag} end
local reader = readers and (reader_with(readers, ARGV[1]) or readers[1] and 1)
if reader then held = readers[reader].token .. ':' .. unmarked(readers[reader].owner) end
held = string.match(held, '^dlock:broken:[^\n]*\n(.*)$') or held
local colon = string.find(held, ':', 1, true)
local token = colon and string.sub(held, 1, colon - 1)
if ARGV[1] ~= '' and token ~= ARGV[1] then return {2, held, tag} end
local id = string.match(held, '^%d+:([%x-]+),')
if not id then return {4, held, tag} end
local ask = reader and KEYS[2] .. '%' .. id or KEYS[2]
local asked = redis.call('GET', ask)
if is_newer(asked) then return {9, ask, asked, tag} end
local listens = asked and string.sub(asked, 1, #id + 5) == 'v=1 ' .. id .. ':'
local left = math.max(redis.call('PTTL', KEYS[1]), 0) + 1000
local text = (listens and 'v=1 ' or 'v=1 ?') .. id .. ':' .. clock[1] .. '.' .. clock[2] .. ' '
redis.call('SET', ask, text .. ARGV[2], 'PX', string.format('%.0f', left))
local instance = string.match(held, '^%d+:[%x-]+,.*,([%x-]+)$')
if instance and #instance == 36 then redis.pcall('PUBLISH', ARGV[3] .. instance, id) end
return {listens and 1 or 4, held, tag}
)lua";

// KEYS queue alive; ARGV waiter, most, tag -> {how many wait before it, tag}; writes nothing
inline constexpr std::string_view kWaitingBefore = R"lua(
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local before = 0
local from = 0
while before <= tonumber(ARGV[2]) do
  local waiting = redis.call('ZRANGE', KEYS[1], from, from + 99)
  if #waiting == 0 then break end
  for _, waiter in ipairs(waiting) do
    if waiter == ARGV[1] then return {before, ARGV[3]} end
    local text = redis.call('HGET', KEYS[2], waiter)
    if alive_until(text) > now then before = before + 1 end
  end
  from = from + 100
end
return {before, ARGV[3]}
)lua";

}  // namespace dlock::redis
