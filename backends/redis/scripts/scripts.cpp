// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/scripts/scripts.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <stdexcept>

#include "backends/redis/scripts/adoption_scripts.hpp"
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

// `next` is `until waiter`: who was woken and has the first try, and until when (server time, ms).
// Gives the waiter and how much of that is left, 0 or less once it has let it pass. One that would
// last longer than any is given is none: the server's clock was set back.
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
    redis.pcall('ZREM', alive, unpack(gone, from, to))
  end
end
)lua";

// KEYS lock fence queue alive next; ARGV waiter (which ends with the owner), lease ms, min token,
// fence ms, place, tag; `place` is what few need, for each word costs: `cleanup queue patience
// arrival`, with cleanup 0|1, queue 0 to 4, patience in ms, and arrival, the first time nothing or
// the head start: '-' and us. With 2 for cleanup, which is as 0, a range of tokens is wanted
// -> {1|2, token, tag} | {8, token, fence, tag} | {0, place, ms left, arrival, tag} | {3, tag}
//    | {4, record, arrival, tag}
//
// The token is above the last one, above min token, and no less than the server's clock, so it
// keeps rising when the fence key is lost. One that is ahead of the clock is remembered until the
// clock has caught up with it. Who was woken (`next`) has the first try; who lets it pass is
// stopped or dead, and its whole process loses its places (whoever lives comes back with its next
// look, and with its arrival). A holder whose value names its instance is told of each newcomer.
// `ms left`: of the lease, or of the first try of another.
//
// Where nobody has it, nobody was woken for it and no token is ahead of the clock, that is all
// there is to it, in the fewest steps: before any function is made. If the last token is known
// then, and no replica is connected, whoever wants a range is given all tokens from there to the
// clock (8: the fence says its last). So no token is ahead of the clock, nor is the fence; and if
// that is lost, the next one is above. A replica that is promoted could have this fence and not the
// grants after it: tokens of the range would then be below tokens that other clients have.
//
// Queue 2: a release may hand the lock to this waiter, which half a millisecond more of patience
// says; 3: it waits to read (readers_scripts.hpp); 4: its process reports its presence, as with 2,
// and it is only woken. One that it was handed with a token too low for
// it was not believed, and is granted anew.
//
// The place of the first waiter of a process is the number of processes before it, that of the
// others the number of waiters: behind a stopped process with many, somebody still looks often. A
// newcomer is told how many waiters are before it, or if they are many the eighth place, which
// looks often enough to learn its own; what is left of the lease, if it is one of those who look
// then. Whoever comes first, or looks again, sees to both keys' expiry, other newcomers by the
// queue's: it was set together with the other's.
//
// To MGET what is no string is not there. Under the lock's key that is an error, which a GET gives.
constexpr std::string_view kLook = R"lua(
local tag = ARGV[#ARGV]
local me = ARGV[1]
local aside = redis.call('MGET', KEYS[2], KEYS[5], KEYS[1])
local held = aside[3]
)lua";

constexpr std::string_view kAcquireAtOnce = R"lua(
local kind = string.byte(ARGV[5])
if not held and not aside[2] and kind ~= 49 then
  local clock = redis.call('TIME')
  local us = clock[1] * 1000000 + clock[2]
  local known = tonumber(aside[1] or '')
  local last = math.max(known or 0, ARGV[3])
  if us > last and us < 9007199254740992 then
    local fence = clock[1] .. string.sub('00000' .. clock[2], -6)
    local range = kind == 50 and known
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

constexpr std::string_view kPlace = R"lua(
local owner = string.sub(me, 38)
local cleanup, queue, patience, arrival = string.match(ARGV[5], '^(%d) (%d) (%d+) (.*)$')
)lua";

constexpr std::string_view kAcquire = R"lua(
if held then
  local colon = string.find(held, ':', 1, true)
  if colon and string.sub(held, colon + 1) == owner then
    local token = string.sub(held, 1, colon - 1)
    if not ((tonumber(token) or 0) <= tonumber(ARGV[3])) then
      redis.call('PEXPIRE', KEYS[1], ARGV[2])
      redis.pcall('ZREM', KEYS[3], me)
      redis.pcall('ZREM', KEYS[4], me)
      return {2, token, tag}
    end
    redis.call('DEL', KEYS[1])
    held = false
  end
end
-- (gate)
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = us / 1000
local fresh = arrival == ''
if string.byte(arrival) == 45 then
  fresh = true
  arrival = string.format('%.0f', us + arrival)
end
local first, first_left = first_try(aside[2], now)
-- (turn)
if not held and (not first or first_left <= 0 or first == me) then
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
  if cleanup == '1' then
    redis.pcall('ZREM', KEYS[3], me)
    redis.pcall('ZREM', KEYS[4], me)
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
  if first == me then redis.call('DEL', KEYS[5]) end
  if fresh then
    local id, instance
    if string.byte(held, -37) == 44 then
      id, instance = string.match(held, '^%d+:([%x-]+),.*,([%x-]+)$')
    end
    if id and #instance == 36 then redis.pcall('PUBLISH', 'dlock:wake:' .. instance, id) end
    if not id and string.sub(held, 1, 14) == 'dlock:readers\n' then
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
if queue == '0' then
  if held then left = redis.call('PTTL', KEYS[1]) end
  if sealed then return {4, string.sub(held, 14), '', tag} end
  return {0, -1, left, '', tag}
end
if arrival == '' then arrival = string.format('%.0f', us) end
redis.call('ZADD', KEYS[3], arrival, me)
local half = ({['2'] = '.5', ['3'] = '.25', ['4'] = '.75'})[queue] or ''
redis.call('ZADD', KEYS[4], string.format('%.0f', now + patience) .. half, me)
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
  local until_ms = redis.call('ZSCORE', KEYS[4], waiting[from])
  if until_ms and tonumber(until_ms) > now then break end
  redis.call('ZREM', KEYS[3], waiting[from])
  redis.call('ZREM', KEYS[4], waiting[from])
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
// The token, too: a server that has forgotten the grant, and that its owner no longer waits, may
// have handed the lock to others since, and to the same owner again.
//
// Removing what is not there writes nothing, but a replica refuses it: its word that the lock is
// gone would be no proof. One that has looked at the type of the key is none.
constexpr std::string_view kRenew = R"lua(
local held = redis.call('GET', KEYS[1])
if held and held == ARGV[3] .. ':' .. ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, ARGV[4]}
end
local probe = redis.pcall('ZREM', KEYS[2], '')
if type(probe) == 'table' and not string.find(probe.err, 'WRONGTYPE', 1, true) then
  redis.call('ZREM', KEYS[2], '')
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

// Gives the lock to a waiter whose process has said lately that it lives (kPresence): for a
// probation of a second, which the waiter counts from before it sent the word that the message
// names. `how`: NX of a free lock, XX in place of the holder's value. 1: done; 2: that process has
// fallen silent, for it had time for a word since the waiter's last look; 0: wake it.
constexpr std::string_view kHandOverLua = R"lua(
local function last_word(here, patience, us)
  local word, till, dead = string.match(here or '', '^(%d+) (%d+) (%d+)$')
  if not word or till - us / 1000 > 1000 then return false, 0 end
  if till * 1000 > us then return word, 0 end
  local looked = patience - (dead - till + 1000)
  return false, us / 1000 - looked >= 500 and 2 or 0
end
local function give(lock, fence, prefix, waiter, word, last, us, how)
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
// `number fresh-until dead-at`: the last as in `alive`, so that it tells when a waiter looked.
constexpr std::string_view kPresence = R"lua(
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local text = string.format('%s %.0f %.0f', ARGV[1], now + ARGV[2], now + ARGV[3])
redis.call('SET', KEYS[1], text, 'PX', ARGV[3])
return {1, ARGV[4]}
)lua";

// Hands the lock to the first waiter, if `lock` and `fence` are given and it is ready for that; or
// wakes the first who can hear it and reserves the free lock for it, shortly. The dead are
// dropped on the way, those of 64 processes or 1,000 at a time. Where PUBLISH is not allowed,
// waiters poll. Gives the error of a queue that cannot be used: nothing may fail once the lock has
// been given back. `waking`: `prefix reserve memory`, of the channels, and of `next` in ms.
// `heads`: the queue's first, where that was asked for already.
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
    local patience = redis.pcall('ZSCORE', alive, head)
    if type(patience) == 'table' then return patience.err end
    redis.pcall('ZREM', queue, head)
    redis.pcall('ZREM', alive, head)
    local process = string.sub(head, 1, 36)
    if patience and tonumber(patience) > now and not deaf[process] then
      asked = asked + 1
      local handed = 0
      if lock and string.sub(patience, -2) == '.5' then
        handed = hand_over(lock, fence, prefix, head, tonumber(patience), us)
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
// -> {2 released, and nobody wants it | 1 released | 0 was not ours, [why nobody can be woken,]
// tag}
//
// Also withdraws a waiter; one that was woken already passes the news on. The GET: as in acquire.
// Where nobody waits and nobody was woken, that is all, as there, before any function is made; and
// so it is where the first in line can be handed the lock. It then never was free.
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

// Before all of that, for who has met nobody when it took the lock: whether that is all, in the
// fewest steps and answers, for a list costs the server what a command does. EXISTS may not be
// allowed: then it is as ever.
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
local patience = at_once and redis.pcall('ZSCORE', KEYS[3], head)
if type(patience) == 'string' and string.sub(patience, -2) == '.5' then
  local clock = redis.call('TIME')
  local us = clock[1] * 1000000 + clock[2]
  patience = tonumber(patience)
  local word = patience * 1000 > us and last_word(stored[4], patience, us)
  local prefix = word and string.match(ARGV[3], '^%S+')
  if word and give(KEYS[1], KEYS[5], prefix, head, word, stored[3], us, 'XX') == 1 then
    redis.pcall('ZREM', KEYS[2], head)
    redis.pcall('ZREM', KEYS[3], head)
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
  redis.pcall('ZREM', KEYS[3], ARGV[2])
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
local readers = readers_in(held, now)
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
  local patience = redis.call('ZSCORE', KEYS[3], waiter)
  if patience and tonumber(patience) * 1000 > us then waiting[#waiting + 1] = waiter end
end
return {kind, value, redis.call('PTTL', KEYS[1]), string.format('%.0f', us),
        redis.call('ZCARD', KEYS[2]), waiting, ARGV[2]}
)lua";

std::string sha1_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha1(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL gives no SHA-1, by which Redis names scripts");
  }
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest.at(i));
  return hex;
}

}  // namespace

Script::Script(std::string source) : text(std::move(source)), sha(sha1_hex(text)) {}

Scripts::Scripts()
    : acquire(fmt::format("{}{}{}{}{}{}", kLook, kAcquireAtOnce, kFirstTryLua, kPlace, kAcquire,
                          kQueueUp)),
      renew(std::string(kRenew)),
      release(fmt::format("{}{}{}{}{}{}{}{}", kFindOurs, kReleaseAlone, kHandOverLua,
                          kReleaseToNext, kFirstTryLua, kWake, kRelease, kPassOn)),
      release_unwanted(std::string(kReleaseUnwanted) + release.text),
      evict(fmt::format("{}{}{}{}{}", kFirstTryLua, kHandOverLua, kWake, kReadersLua, kEvict)),
      presence(std::string(kPresence)),
      inspect(std::string(kInspect)),
      record(record_script()),
      seal(seal_script()),
      set_record(set_record_script()),
      raise(raise_script()),
      note(note_script()),
      set_note(set_note_script()),
      acquire_in_order(
          acquire_in_turn(fmt::format("{}{}{}{}{}{}{}{}", kLook, kFirstTryLua, kHandOverLua, kWake,
                                      kComesBeforeLua, kPlace, kAcquire, kQueueUp))),
      time(time_script()),
      acquire_under(
          acquire_under_gate(fmt::format("{}{}{}{}{}{}{}{}", kLook, kFirstTryLua, kHandOverLua,
                                         kWake, wake_all_lua(), kPlace, kAcquire, kQueueUp))),
      acquire_in_order_under(acquire_under_gate(acquire_in_turn(
          fmt::format("{}{}{}{}{}{}{}{}{}", kLook, kFirstTryLua, kHandOverLua, kWake,
                      wake_all_lua(), kComesBeforeLua, kPlace, kAcquire, kQueueUp)))),
      seal_under(write_under_gate(seal.text)),
      set_record_under(write_under_gate(set_record.text)),
      claimed(std::string(kClaimed)),
      highest(std::string(kHighest)),
      asked(std::string(kAsked)),
      listen(std::string(kListen)),
      ask(std::string(kReadersLua) + std::string(kAsk)),
      waiting_before(std::string(kWaitingBefore)),
      offer(std::string(offer_script())),
      adopt(std::string(adopt_script())),
      acquire_permits(std::string(kPermitsLua) + std::string(kAcquirePermits)),
      renew_permits(std::string(kPermitsLua) + std::string(kRenewPermits)),
      release_permits(std::string(kPermitsLua) + std::string(kReleasePermits)),
      inspect_permits(std::string(kInspectPermits)),
      set_limit(std::string(kPermitsLua) + std::string(kSetLimit)),
      evict_permits(std::string(kPermitsLua) + std::string(kEvictPermits)) {}

ScriptPieces script_pieces() {
  return {kLook, kFirstTryLua, kHandOverLua, kWake, kPlace, kQueueUp, kFindOurs, kRelease, kPassOn};
}

const Scripts& scripts() {
  // Never destroyed: a store of static storage gives its locks back after the end of main().
  static const auto& all = *new Scripts;
  return all;
}

}  // namespace dlock::redis
