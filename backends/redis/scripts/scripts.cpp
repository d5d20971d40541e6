// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/scripts/scripts.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <stdexcept>

#include "backends/redis/scripts/adoption_scripts.hpp"
#include "backends/redis/scripts/alive_lua.hpp"
#include "backends/redis/scripts/asking_scripts.hpp"
#include "backends/redis/scripts/contention_script.hpp"
#include "backends/redis/scripts/fair_script.hpp"
#include "backends/redis/scripts/gate_scripts.hpp"
#include "backends/redis/scripts/permits_scripts.hpp"
#include "backends/redis/scripts/pieces.hpp"
#include "backends/redis/scripts/readers_scripts.hpp"
#include "backends/redis/scripts/record_scripts.hpp"

namespace dlock::redis {
namespace {

// `next` is `until waiter`: the notified waiter has the first try until then (server time, ms).
// first_try returns the waiter and the ms left: 0 or less once it has let the try pass. A try that
// would last longer than 500 ms counts as none: the server's clock was set back.
constexpr std::string_view kFirstTryLua = R"lua(
local function first_try(text, now)
  local gap = text and string.find(text, ' ', 1, true)
  if not gap then return false, 0 end
  local left = (tonumber(string.sub(text, 1, gap - 1)) or now + 1000) - now
  if not (left <= 500) then return false, 0 end
  return string.sub(text, gap + 1), left
end
local function drop(queue, alive, process)
  local gone = {}
  for _, waiter in ipairs(redis.pcall('ZRANGE', queue, 0, 9999)) do
    if string.sub(waiter, 1, 36) == process then gone[#gone + 1] = waiter end
  end
  for from = 1, #gone, 100 do
    local to = math.min(from + 99, #gone)
    redis.pcall('ZREM', queue, unpack(gone, from, to))
    redis.pcall('HDEL', alive, unpack(gone, from, to))
  end
end
)lua";

// KEYS lock fence queue alive next; ARGV waiter (which ends with the owner), lease ms, min token,
// fence ms, how (rules/waiting.hpp), until (server time, us), tag
// -> {1|2, token, tag} | {8, token, fence, tag} | {0, place, ms left, arrival, tag} | {3, tag}
//    | {4, record, arrival, tag} | {10, server time us, tag}
//
// After `until` it changes nothing (10), since its client may no longer exist. It still answers
// that the lock is the client's already.
//
// Tokens: a token is above the last one, above min token, and at least the server's clock, so that
// tokens rise when the fence key is lost. A token ahead of the clock is remembered until the clock
// has caught up with it.
//
// Order: the notified waiter (`next`) has the first try. A waiter that lets its try pass is stopped
// or dead, and its whole process loses its places. A live waiter of that process returns at its
// next poll, with its arrival. Each new waiter is published to a holder whose value names its
// instance. `ms left` is the rest of the lease, or of another waiter's first try.
//
// Fast path: the lock is free, no waiter was notified, and no token is ahead of the clock. It runs
// before any function is defined. With range=yes, a known last token and no connected replica, the
// grant brings all tokens between the last token and the clock (8: the fence is the last of them).
// So neither a token nor the fence is ahead of the clock, and the next token is above them even if
// the fence is lost. A promoted replica could have this fence and not the grants after it: tokens
// of the range would then be below tokens of other clients.
//
// A waiter rejects a handed lock whose token is too low for it. Its next request replaces that
// grant.
//
// Place: the first waiter of a process has the number of processes before it, the others have the
// number of waiters. So behind a stopped process with many waiters another one still polls often. A
// new waiter gets the number of waiters before it, or 8 if they are many: place 8 polls often
// enough to learn its own. It gets the rest of the lease if its place polls at the end of a lease.
// The first waiter, and each one that polls again, prolongs both keys. Other new waiters check the
// queue's expiry only: both were set together.
//
// MGET treats a key that is not a string as missing. A GET of the lock's key then raises the error.
constexpr std::string_view kLook = R"lua(
local tag = ARGV[#ARGV]
local me = ARGV[1]
local aside = redis.call('MGET', KEYS[2], KEYS[5], KEYS[1])
local held = aside[3]
)lua";

constexpr std::string_view kAcquireAtOnce = R"lua(
if not held and not aside[2] and not string.find(ARGV[5], 'queued=yes', 1, true) then
  local clock = redis.call('TIME')
  local us = clock[1] * 1000000 + clock[2]
  local known = tonumber(aside[1] or '')
  local last = math.max(known or 0, ARGV[3])
  local usable = us > last and us < 9007199254740992 and us - ARGV[6] <= 0
  if usable and (known or not aside[1]) then
    local fence = clock[1] .. string.sub('00000' .. clock[2], -6)
    local range = known and string.find(ARGV[5], 'range=yes', 1, true)
    if range then
      local told = redis.pcall('INFO', 'replication')
      range = type(told) == 'string' and string.find(told, 'connected_slaves:0', 1, true)
    end
    local token = range and string.format('%.0f', last + 1) or fence
    local value = token .. ':' .. string.sub(me, 38)
    if not redis.call('SET', KEYS[1], value, 'PX', ARGV[2], 'NX') then
      redis.call('GET', KEYS[1])
    end
    redis.call('SET', KEYS[2], fence, 'PX', ARGV[4])
    if range then return {8, token, fence, tag} end
    return {1, token, tag}
  end
end
)lua";

constexpr std::string_view kHow = R"lua(
local owner = string.sub(me, 38)
local queued, kind, patience, arrival =
    string.match(ARGV[5], '^queued=(%a+) range=%a+ kind=(%a+) patience=(%d+) arrival=(.*)$')
)lua";

constexpr std::string_view kAcquire = R"lua(
if held then
  local colon = string.find(held, ':', 1, true)
  if colon and string.sub(held, colon + 1) == owner then
    local token = string.sub(held, 1, colon - 1)
    if not ((tonumber(token) or 0) <= tonumber(ARGV[3])) then
      redis.call('PEXPIRE', KEYS[1], ARGV[2])
      redis.pcall('ZREM', KEYS[3], me)
      redis.pcall('HDEL', KEYS[4], me)
      return {2, token, tag}
    end
    redis.call('DEL', KEYS[1])
    held = false
  end
end
-- (gate)
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
if us - ARGV[6] > 0 then return {10, string.format('%.0f', us), tag} end
local now = us / 1000
local fresh = arrival == ''
if string.byte(arrival) == 45 then
  fresh = true
  arrival = string.format('%.0f', us + arrival)
end
local first, first_left = first_try(aside[2], now)
-- (turn)
if not held and (not first or first_left <= 0 or first == me) then
  if is_newer(aside[1]) then return {9, KEYS[2], aside[1], tag} end
  local token = math.max((tonumber(aside[1] or '0') or 0) + 1, us, tonumber(ARGV[3]) + 1)
  if not (token < 9007199254740992) then
    redis.call('GET', KEYS[1])
    return {3, tag}
  end
  local memory = string.format('%.0f', ARGV[4] + math.max(token - us, 0) / 1000)
  token = string.format('%.0f', token)
  -- (seal)
  if not redis.call('SET', KEYS[1], token .. ':' .. owner, 'PX', ARGV[2], 'NX') then
    redis.call('GET', KEYS[1])
  end
  redis.call('SET', KEYS[2], token, 'PX', memory)
  if aside[2] then redis.call('DEL', KEYS[5]) end
  if queued == 'yes' then
    redis.pcall('ZREM', KEYS[3], me)
    redis.pcall('HDEL', KEYS[4], me)
  end
  if first and string.sub(first, 1, 36) ~= string.sub(me, 1, 36) then
    drop(KEYS[3], KEYS[4], string.sub(first, 1, 36))
  end
  return {1, token, tag}
end
)lua";

// The end of it, where it was not granted.
constexpr std::string_view kQueueUp = R"lua(
local left = -1
if held then
  if string.sub(held, 1, 14) == 'dlock:readers ' then
    local version = string.match(held, '^dlock:readers (v=%d+)')
    if is_newer(version) then return {9, KEYS[1], version, tag} end
  end
  if first == me then redis.call('DEL', KEYS[5]) end
  if fresh then
    local id, instance
    if string.byte(held, -37) == 44 then
      id, instance = string.match(held, '^%d+:([%x-]+),.*,([%x-]+)$')
    end
    if id and #instance == 36 then redis.pcall('PUBLISH', 'dlock:wake:' .. instance, id) end
    if not id and string.sub(held, 1, 14) == 'dlock:readers ' then
      for reader, place in string.gmatch(held, ' ([%x-]+),[^\n]*,([%x-]+)\n') do
        if #place == 36 then redis.pcall('PUBLISH', 'dlock:wake:' .. place, reader) end
      end
    end
  end
elseif first then
  redis.call('GET', KEYS[1])
  left = math.ceil(first_left)
end
local sealed = held and string.sub(held, 1, 13) == 'dlock:record:'
if kind == 'none' then
  if held then left = redis.call('PTTL', KEYS[1]) end
  if sealed then return {4, string.sub(held, 14), '', tag} end
  return {0, -1, left, '', tag}
end
if arrival == '' then arrival = string.format('%.0f', us) end
redis.call('ZADD', KEYS[3], arrival, me)
redis.call('HSET', KEYS[4], me, string.format('v=1 until=%.0f kind=%s', now + patience, kind))
local behind = fresh and redis.call('ZRANK', KEYS[3], me) or 0
local kept = redis.call('PTTL', KEYS[3])
if behind == 0 then kept = math.min(kept, redis.call('PTTL', KEYS[4])) end
if kept < patience * 1.5 then
  redis.call('PEXPIRE', KEYS[3], patience * 2)
  redis.call('PEXPIRE', KEYS[4], patience * 2)
end
if held and behind < 4 then left = redis.call('PTTL', KEYS[1]) end
-- (silent)
if sealed then return {4, string.sub(held, 14), arrival, tag} end
if behind > 0 then
  return {0, behind >= 8 and behind < 64 and 8 or behind, left, arrival, tag}
end
local waiting = redis.call('ZRANGE', KEYS[3], 0, 63)
local from = 1
while waiting[from] and waiting[from] ~= me do
  local text = redis.call('HGET', KEYS[4], waiting[from])
  if is_newer(text) then
    redis.call('ZREM', KEYS[3], me)
    redis.call('HDEL', KEYS[4], me)
    return {9, KEYS[4], text, tag}
  end
  if alive_until(text) > now then break end
  redis.call('ZREM', KEYS[3], waiting[from])
  redis.call('HDEL', KEYS[4], waiting[from])
  from = from + 1
end
local processes = 0
local seen = {}
for i = from, #waiting do
  local process = string.sub(waiting[i], 1, 36)
  if waiting[i] == me then
    return {0, seen[process] and i - from or processes, left, arrival, tag}
  end
  if not seen[process] then processes = processes + 1 end
  seen[process] = true
end
return {0, redis.call('ZRANK', KEYS[3], me), left, arrival, tag}
)lua";

// KEYS lock alive broken; ARGV owner, lease ms, token, tag
// -> {1 renewed | 0 gone | 2 somebody else's, tag} | {3 broken by an operator, mark, tag}
//
// Compares the token as well as the owner: a server that has forgotten the grant may have handed
// the lock to other clients since, and to the same owner again.
//
// HDEL of a missing field writes nothing, but a replica refuses it: what a replica answers does not
// prove that the lock is gone. WRONGTYPE shows that the server is not a replica.
constexpr std::string_view kRenew = R"lua(
local held = redis.call('GET', KEYS[1])
if held and held == ARGV[3] .. ':' .. ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, ARGV[4]}
end
local probe = redis.pcall('HDEL', KEYS[2], '')
if type(probe) == 'table' and not string.find(probe.err, 'WRONGTYPE', 1, true) then
  redis.call('HDEL', KEYS[2], '')
end
local function mark_in(text)
  if not text or string.sub(text, -#ARGV[1] - 1) ~= ':' .. ARGV[1] then return nil end
  return string.match(text, '^dlock:broken:([^\n]*)\n') or ''
end
local mark = mark_in(redis.call('GET', KEYS[3]))
if not mark and held and string.sub(held, 1, 13) == 'dlock:broken:' then mark = mark_in(held) end
if mark then return {3, mark, ARGV[4]} end
if held then return {2, ARGV[4]} end
return {0, ARGV[4]}
)lua";

// Hands the lock to a waiter whose process has reported its presence lately (kPresence), for a
// probation of one second. The waiter counts it from before it sent the report that the message
// names. `how`: NX for a free lock, XX to replace the holder's value. Returns 1: done; 2: the
// process is silent, although it had time for a report since the waiter's last poll; 0: notify the
// waiter.
constexpr std::string_view kHandOverLua = R"lua(
local function last_word(here, patience, us)
  local word, till, dead = string.match(here or '', '^(%d+) (%d+) (%d+)$')
  if not word or till - us / 1000 > 1000 then return false, 0 end
  if till * 1000 > us then return word, 0 end
  local looked = patience - (dead - till + 1000)
  return false, us / 1000 - looked >= 500 and 2 or 0
end
local function give(lock, fence, prefix, waiter, word, last, us, how)
  if is_newer(last) then return 0 end
  local token = math.max((tonumber(last or '0') or 0) + 1, us)
  if not (token < 9007199254740992) then return 0 end
  local memory = '172800000'
  if token > us then memory = string.format('%.0f', memory + (token - us) / 1000) end
  token = string.format('%.0f', token)
  local owner = string.sub(waiter, 38)
  local set = redis.pcall('SET', lock, token .. ':' .. owner, 'PX', '1000', how)
  if not set or not set.ok then return 0 end
  local message = string.sub(owner, 1, 36) .. ' ' .. token .. ' ' .. word .. ' 1000'
  set = redis.pcall('SET', fence, token, 'PX', memory)
  local heard = set.ok and redis.pcall('PUBLISH', prefix .. string.sub(waiter, 1, 36), message)
  if type(heard) == 'number' and heard > 0 then return 1 end
  redis.call('DEL', lock)
  return 0
end
local function hand_over(lock, fence, prefix, waiter, patience, us)
  local seen = redis.pcall('MGET', 'dlock:here%' .. string.sub(waiter, 1, 36), fence)
  local word, why_not = last_word(seen[1], patience, us)
  if not word then return why_not end
  return give(lock, fence, prefix, waiter, word, seen[2], us, 'NX')
end
)lua";

// KEYS presence; ARGV number of the word, how long it is fresh, patience (both ms), tag -> {1, tag}
//
// Writes `number fresh-until dead-at`. dead-at is computed as in `alive`: the difference of the two
// is the time between this report and the waiter's poll.
constexpr std::string_view kPresence = R"lua(
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local text = string.format('%s %.0f %.0f', ARGV[1], now + ARGV[2], now + ARGV[3])
redis.call('SET', KEYS[1], text, 'PX', ARGV[3])
return {1, ARGV[4]}
)lua";

// Hands the lock to the first waiter, if `lock` and `fence` are arguments and the waiter is ready
// for that. Otherwise notifies the first waiter that receives the message, and reserves the free
// lock for it. Drops dead waiters on the way: those of 64 processes, or 1,000. Without the right to
// PUBLISH, waiters poll. Returns the error of a queue that cannot be used: after the lock was
// released nothing may fail. `waking`: `prefix reserve memory`, the channels' prefix, and both
// times of `next` in ms. `heads`: the first of the queue, if the caller has read it.
constexpr std::string_view kWake = R"lua(
local function wake(queue, alive, next_key, waking, lock, fence, heads)
  local now, us, prefix, reserve, memory
  local deaf = {}
  local asked = 0
  for _ = 1, 1000 do
    heads = heads or redis.pcall('ZRANGE', queue, 0, 0)
    if heads.err then return heads.err end
    local head = heads[1]
    heads = nil
    if not head or asked == 64 then return nil end
    if not now then
      local clock = redis.call('TIME')
      us = clock[1] * 1000000 + clock[2]
      now = math.floor(us / 1000)
      prefix, reserve, memory = string.match(waking, '^(%S+) (%d+) (%d+)$')
    end
    local text = redis.pcall('HGET', alive, head)
    if type(text) == 'table' then return text.err end
    if is_newer(text) then return text end
    local patience, kind = alive_until(text)
    redis.pcall('ZREM', queue, head)
    redis.pcall('HDEL', alive, head)
    local process = string.sub(head, 1, 36)
    if patience > now and not deaf[process] then
      asked = asked + 1
      local handed = 0
      if lock and kind == 'handed' then
        handed = hand_over(lock, fence, prefix, head, patience, us)
        if handed == 1 then return nil end
      end
      local heard = 0
      if handed == 2 then
        drop(queue, alive, process)
      else
        heard = redis.pcall('PUBLISH', prefix .. process, string.sub(head, 38, 73))
        if type(heard) ~= 'number' then return nil end
      end
      if heard > 0 then
        local until_ms = string.format('%.0f', now + reserve)
        redis.pcall('SET', next_key, until_ms .. ' ' .. head, 'PX', memory)
        return nil
      end
      deaf[process] = true
    end
  end
end
)lua";

// KEYS lock queue alive next fence; ARGV owner, waiter, waking, tag
// -> {2 released, no client waits | 1 released | 0 was not the owner's, [why waiters get no
// message,] tag}
//
// Also withdraws a waiter. One that was notified already passes the message on. The GET raises the
// error of a key of another type, as in acquire. Two fast paths run before most functions are
// defined: no client waits, and the first waiter can be handed the lock. A handed lock is never
// free in between.
constexpr std::string_view kFindOurs = R"lua(
local heads = redis.pcall('ZRANGE', KEYS[2], 0, 0)
local head = heads[1]
local stored = head and redis.pcall('MGET', KEYS[1], KEYS[4], KEYS[5],
                                    'dlock:here%' .. string.sub(head, 1, 36))
if not stored or stored.err then stored = redis.call('MGET', KEYS[1], KEYS[4]) end
local held, reserved, left = stored[1], stored[2], 0
local colon = held and string.find(held, ':', 1, true)
local ours = colon and string.sub(held, colon + 1) == ARGV[1] and 1 or 0
if ours == 0 and held and string.sub(held, 1, 13) == 'dlock:broken:' and
   string.sub(held, -#ARGV[1] - 1) == ':' .. ARGV[1] then
  ours = 1
end
)lua";

constexpr std::string_view kReleaseAlone = R"lua(
local at_once = ours == 1 and not reserved and not heads.err
if at_once and not head then
  redis.call('DEL', KEYS[1])
  return {2, ARGV[4]}
end
)lua";

// Precedes the script for a holder that met no other client when it acquired: the shortest way,
// with a short answer, since a list costs the server as much as a command. Without the right to
// EXISTS the rest of the script runs.
// -> '2 tag' | as release
constexpr std::string_view kReleaseUnwanted = R"lua(
do
  local held = redis.call('GET', KEYS[1])
  local colon = held and string.find(held, ':', 1, true)
  if colon and string.sub(held, colon + 1) == ARGV[1] and
     redis.pcall('EXISTS', KEYS[2], KEYS[4]) == 0 then
    redis.call('DEL', KEYS[1])
    return '2 ' .. ARGV[4]
  end
end
)lua";

constexpr std::string_view kReleaseToNext = R"lua(
local text = at_once and redis.pcall('HGET', KEYS[3], head)
local patience, kind = alive_until(type(text) == 'string' and text)
if kind == 'handed' then
  local clock = redis.call('TIME')
  local us = clock[1] * 1000000 + clock[2]
  local word = patience * 1000 > us and last_word(stored[4], patience, us)
  local prefix = word and string.match(ARGV[3], '^%S+')
  if word and give(KEYS[1], KEYS[5], prefix, head, word, stored[3], us, 'XX') == 1 then
    redis.pcall('ZREM', KEYS[2], head)
    redis.pcall('HDEL', KEYS[3], head)
    return {1, ARGV[4]}
  end
end
)lua";

constexpr std::string_view kRelease = R"lua(
if ours == 1 then
  redis.call('DEL', KEYS[1])
  held = false
elseif not held then
  redis.call('GET', KEYS[1])
end
)lua";

// The end of it.
constexpr std::string_view kPassOn = R"lua(
if ARGV[2] ~= '' then
  heads = nil
  redis.pcall('ZREM', KEYS[2], ARGV[2])
  redis.pcall('HDEL', KEYS[3], ARGV[2])
end
-- (readers)
if reserved then
  local clock = redis.call('TIME')
  reserved, left = first_try(reserved, clock[1] * 1000 + clock[2] / 1000)
end
if reserved and (reserved == ARGV[2] or (left <= 0 and not held)) then
  redis.call('DEL', KEYS[4])
  if reserved ~= ARGV[2] then
    drop(KEYS[2], KEYS[3], string.sub(reserved, 1, 36))
    heads = nil
  end
  reserved = false
end
local trouble = nil
if not held and not reserved then
  trouble = wake(KEYS[2], KEYS[3], KEYS[4], ARGV[3], KEYS[1], KEYS[5], heads)
end
if trouble then return {ours, trouble, ARGV[4]} end
return {ours, ARGV[4]}
)lua";

// KEYS lock queue alive next broken fence; ARGV token, waking, mark, at once 0|1, tag
// -> {1 evicted | 5 marked, ms left, tag} | {0 nobody holds it | 3 a record is there, tag}
//    | {2 another token | 6 foreign, the value there, tag}
//
// A marked value is `dlock:broken:MARK`, a newline, and the value before it; its expiry stays. A
// marked reader has `broken:MARK ` before its owner. Scripts of older versions find neither, so
// their renewals fail. Beside the lock, under `broken`, the same text is kept until the holder has
// surely asked for it; of readers, whose leases do not end at once, what was there before as well.
constexpr std::string_view kEvict = R"lua(
local tag = ARGV[#ARGV]
local held = redis.call('GET', KEYS[1])
if not held then return {0, tag} end
if string.sub(held, 1, 13) == 'dlock:record:' then return {3, tag} end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local left = redis.call('PTTL', KEYS[1])
local value = string.match(held, '^dlock:broken:[^\n]*\n(.*)$') or held
local marked = value ~= held
local readers, version = readers_in(held, now)
if is_newer(version) then return {9, KEYS[1], version, tag} end
local reader = readers and (reader_with(readers, ARGV[1]) or readers[1] and 1)
if reader then
  local owner = unmarked(readers[reader].owner)
  marked = owner ~= readers[reader].owner
  value = readers[reader].token .. ':' .. owner
  left = math.ceil(readers[reader].till - now)
end
local colon = string.find(value, ':', 1, true)
if not colon or string.sub(value, 1, colon - 1) ~= ARGV[1] then return {2, value, tag} end
local at_once = ARGV[4] == '1'
local id = string.match(value, '^%d+:(%x+%-%x+%-%x+%-%x+%-%x+),[^,]*,[^,]*,')
if not at_once and (not id or left < 0) then return {6, value, tag} end
local text = 'dlock:broken:' .. ARGV[3] .. '\n' .. value
if at_once or not marked then
  local before = reader and redis.call('GET', KEYS[5])
  local aside = text
  if before and #before < 4096 then aside = aside .. '\n' .. before end
  redis.call('SET', KEYS[5], aside, 'PX', string.format('%.0f', math.max(left, 0) + 1000))
end
if not at_once then
  if marked then return {5, left, tag} end
  if reader then
    readers[reader].owner = 'broken:' .. ARGV[3] .. ' ' .. unmarked(readers[reader].owner)
    keep_readers(KEYS[1], readers, now)
  else
    redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', math.max(left, 1)))
  end
  local instance = string.match(value, ',([%x-]+)$')
  if instance and #instance == 36 then
    redis.pcall('PUBLISH', string.match(ARGV[2], '^%S+') .. instance, id .. ' broken')
  end
  return {5, left, tag}
end
if reader then table.remove(readers, reader) end
if reader and #readers > 0 then
  keep_readers(KEYS[1], readers, now)
  return {1, left, tag}
end
redis.call('DEL', KEYS[1])
wake(KEYS[2], KEYS[3], KEYS[4], ARGV[2], KEYS[1], KEYS[6])
return {1, left, tag}
)lua";

// KEYS lock queue alive; ARGV most waiters, tag
// -> {type, value, ms left, server time us, waiters, {waiter...}, tag}; writes nothing
constexpr std::string_view kInspect = R"lua(
local kind = redis.call('TYPE', KEYS[1])
kind = kind.ok or kind
local value = ''
if kind == 'string' then value = redis.call('GET', KEYS[1]) end
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local waiting = {}
local all = redis.call('ZRANGE', KEYS[2], 0, tonumber(ARGV[1]) - 1)
for _, waiter in ipairs(all) do
  local text = redis.call('HGET', KEYS[3], waiter)
  if is_newer(text) then return {9, KEYS[3], text, ARGV[2]} end
  if alive_until(text) * 1000 > us then waiting[#waiting + 1] = waiter end
end
return {kind, value, redis.call('PTTL', KEYS[1]), string.format('%.0f', us),
        redis.call('ZCARD', KEYS[2]), waiting, ARGV[2]}
)lua";

std::string sha1_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha1(), nullptr) != 1) {
    throw std::runtime_error(
        "OpenSSL computes no SHA-1, by which Redis names scripts; allow SHA-1 in its "
        "configuration");
  }
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest.at(i));
  return hex;
}

}  // namespace

Script::Script(std::string source) : text(std::move(source)), sha(sha1_hex(text)) {}

Scripts::Scripts()
    : acquire(fmt::format("{}{}{}{}{}{}{}", kLook, kAcquireAtOnce, kAliveLua, kFirstTryLua, kHow,
                          kAcquire, kQueueUp)),
      renew(std::string(kRenew)),
      release(fmt::format("{}{}{}{}{}{}{}{}{}", kFindOurs, kReleaseAlone, kAliveLua, kHandOverLua,
                          kReleaseToNext, kFirstTryLua, kWake, kRelease, kPassOn)),
      release_unwanted(std::string(kReleaseUnwanted) + release.text),
      evict(fmt::format("{}{}{}{}{}{}", kAliveLua, kFirstTryLua, kHandOverLua, kWake, kReadersLua,
                        kEvict)),
      presence(std::string(kPresence)),
      inspect(std::string(kAliveLua) + std::string(kInspect)),
      record(record_script()),
      seal(seal_script()),
      set_record(set_record_script()),
      raise(raise_script()),
      note(note_script()),
      set_note(set_note_script()),
      acquire_in_order(acquire_in_turn(fmt::format("{}{}{}{}{}{}{}{}{}", kLook, kAliveLua,
                                                   kFirstTryLua, kHandOverLua, kWake,
                                                   kComesBeforeLua, kHow, kAcquire, kQueueUp))),
      time(time_script()),
      acquire_under(acquire_under_gate(fmt::format("{}{}{}{}{}{}{}{}{}", kLook, kAliveLua,
                                                   kFirstTryLua, kHandOverLua, kWake,
                                                   wake_all_lua(), kHow, kAcquire, kQueueUp))),
      acquire_in_order_under(acquire_under_gate(acquire_in_turn(
          fmt::format("{}{}{}{}{}{}{}{}{}{}", kLook, kAliveLua, kFirstTryLua, kHandOverLua, kWake,
                      wake_all_lua(), kComesBeforeLua, kHow, kAcquire, kQueueUp)))),
      seal_under(write_under_gate(seal.text)),
      set_record_under(write_under_gate(set_record.text)),
      claimed(std::string(kClaimed)),
      highest(std::string(kAliveLua) + std::string(kHighest)),
      asked(std::string(kAsked)),
      listen(std::string(kAliveLua) + std::string(kListen)),
      ask(fmt::format("{}{}{}", kAliveLua, kReadersLua, kAsk)),
      waiting_before(std::string(kAliveLua) + std::string(kWaitingBefore)),
      offer(std::string(offer_script())),
      adopt(std::string(kAliveLua) + std::string(adopt_script())),
      acquire_permits(std::string(kPermitsLua) + std::string(kAcquirePermits)),
      renew_permits(std::string(kPermitsLua) + std::string(kRenewPermits)),
      release_permits(std::string(kPermitsLua) + std::string(kReleasePermits)),
      inspect_permits(std::string(kInspectPermits)),
      set_limit(std::string(kPermitsLua) + std::string(kSetLimit)),
      evict_permits(std::string(kPermitsLua) + std::string(kEvictPermits)) {}

ScriptPieces script_pieces() {
  return {kLook, kFirstTryLua, kHandOverLua, kWake, kHow, kQueueUp, kFindOurs, kRelease, kPassOn};
}

const Scripts& scripts() {
  // Never destroyed: a static store releases its locks after the end of main().
  static const auto& all = *new Scripts;
  return all;
}

}  // namespace dlock::redis
