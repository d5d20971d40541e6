// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/scripts/record_scripts.hpp"

#include <fmt/format.h>

#include "backends/redis/scripts/alive_lua.hpp"

namespace dlock::redis {
namespace {

// Notifies all waiters after a change of the record; all of them poll. The first one to poll
// acquires an open lock. The others keep their places.
constexpr std::string_view kWakeAll = R"lua(
local function wake_all(queue, next_key, prefix)
  redis.call('DEL', next_key)
  for _, waiter in ipairs(redis.call('ZRANGE', queue, 0, -1)) do
    local heard = redis.pcall('PUBLISH', prefix .. string.sub(waiter, 1, 36),
                              string.sub(waiter, 38, 73))
    if type(heard) ~= 'number' then return end
  end
end
)lua";

// Returns the answer of the script if the fence cannot be raised.
constexpr std::string_view kRaiseFence = R"lua(
local function raise(fence, above, memory, tag)
  local clock = redis.call('TIME')
  local us = clock[1] * 1000000 + clock[2]
  local last = redis.call('GET', fence) or '0'
  if is_newer(last) then return {9, fence, last, tag} end
  local token = math.max(tonumber(last) or 0, tonumber(above))
  if not (token < 9007199254740991) then return {3, tag} end
  memory = string.format('%.0f', memory + math.max(token - us, 0) / 1000)
  redis.call('SET', fence, string.format('%.0f', token), 'PX', memory)
end
)lua";

// The first items of each reply of the scripts below: {1 done | 0 no record, or the lock is not the
// caller's | 3 no token left, tag} | {2, the record there, tag}

// KEYS lock alive; ARGV tag
//
// A replica's answer may be old, so the script makes a write, which a replica refuses.
constexpr std::string_view kRecord = R"lua(
redis.call('HDEL', KEYS[2], '')
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, 13) == 'dlock:record:' then
  return {2, string.sub(held, 14), ARGV[1]}
end
return {0, ARGV[1]}
)lua";

// KEYS lock queue next; ARGV token:owner, record, channel prefix, tag
//
// The token, too: a late copy of the acquire may have given the lock to the same owner again.
constexpr std::string_view kSeal = R"lua(
local tag = ARGV[#ARGV]
local held = redis.call('GET', KEYS[1])
if not held then return {0, tag} end
if string.sub(held, 1, 13) == 'dlock:record:' then return {2, string.sub(held, 14), tag} end
if held == ARGV[1] then
  -- (gate)
  redis.call('SET', KEYS[1], 'dlock:record:' .. ARGV[2])
  wake_all(KEYS[2], KEYS[3], ARGV[3])
  return {1, tag}
end
return {0, tag}
)lua";

// KEYS lock fence queue next; ARGV from, to ('' opens), min token, fence ms, channel prefix, tag
constexpr std::string_view kSetRecord = R"lua(
local tag = ARGV[#ARGV]
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 1, 13) ~= 'dlock:record:' then return {0, tag} end
if string.sub(held, 14) ~= ARGV[1] then return {2, string.sub(held, 14), tag} end
-- (gate)
if ARGV[2] ~= '' then
  redis.call('SET', KEYS[1], 'dlock:record:' .. ARGV[2])
else
  local refused = raise(KEYS[2], ARGV[3], ARGV[4], tag)
  if refused then return refused end
  redis.call('DEL', KEYS[1])
end
wake_all(KEYS[3], KEYS[4], ARGV[5])
return {1, tag}
)lua";

// KEYS lock fence; ARGV owner, min token, fence ms, tag
constexpr std::string_view kRaise = R"lua(
local held = redis.call('GET', KEYS[1])
local colon = held and string.find(held, ':', 1, true)
if not colon or string.sub(held, colon + 1) ~= ARGV[1] then return {0, ARGV[4]} end
return raise(KEYS[2], ARGV[2], ARGV[3], ARGV[4]) or {1, ARGV[4]}
)lua";

// KEYS note alive; ARGV tag
constexpr std::string_view kNote = R"lua(
redis.call('HDEL', KEYS[2], '')
local text = redis.call('GET', KEYS[1])
if text then return {2, text, ARGV[1]} end
return {0, ARGV[1]}
)lua";

// KEYS note; ARGV from, to ('' for none, each), tag
constexpr std::string_view kSetNote = R"lua(
local text = redis.call('GET', KEYS[1]) or ''
if text ~= ARGV[1] then
  if text ~= '' then return {2, text, ARGV[3]} end
  return {0, ARGV[3]}
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return {1, ARGV[3]}
)lua";

// KEYS note alive; ARGV tag. In milliseconds, rounded down.
constexpr std::string_view kTime = R"lua(
local now = redis.call('TIME')
return {2, string.format('%d', now[1] * 1000 + math.floor(now[2] / 1000)), ARGV[1]}
)lua";

}  // namespace

std::string record_script() { return std::string(kRecord); }
std::string seal_script() { return fmt::format("{}{}", kWakeAll, kSeal); }
std::string set_record_script() {
  return fmt::format("{}{}{}{}", kAliveLua, kWakeAll, kRaiseFence, kSetRecord);
}
std::string raise_script() { return fmt::format("{}{}{}", kAliveLua, kRaiseFence, kRaise); }
std::string note_script() { return std::string(kNote); }
std::string set_note_script() { return std::string(kSetNote); }
std::string time_script() { return std::string(kTime); }

std::string_view wake_all_lua() { return kWakeAll; }

}  // namespace dlock::redis
