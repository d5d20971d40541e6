// SPDX-License-Identifier: Apache-2.0
//
// Semaphores on the server. One string has the whole state of a semaphore: its limit, its last
// token, and a line for each acquisition in the order of arrival. So no part of it can be missing.
// The number of free permits is counted from the lines. Every script that reads it leaves out
// expired lines.
//
//   dlock:permits v=1 limit=LIMIT token=TOKEN
//   h TILL PERMITS TOKEN SINCE UUID,HOST,PID,APP       holds; till, since: server time, ms
//   h TILL PERMITS TOKEN SINCE broken:MARK UUID,...    an operator breaks it: counts, not renewed
//   b TILL PERMITS TOKEN SINCE UUID,HOST,PID,APP MARK  evicted; its holder has not asked yet
//   w TILL PERMITS NEAR SINCE INSTANCE,UUID,HOST,PID,APP  waits, and polls again before TILL
//
// The first nine waiters poll at least every NEAR ms, those behind them less often. A waiter that
// moves up is notified, and has NEAR ms to poll. So a waiter that was killed or stopped leaves the
// queue NEAR ms later at the latest, at once if it cannot be notified. A live one returns with
// SINCE, and so gets its place back.
#pragma once

#include <string_view>

namespace dlock::redis {

/// load returns nil for another text, and the version of permits of another format. not_loaded is
/// the answer then: 9 as in alive_lua.hpp, or `code`.
inline constexpr std::string_view kPermitsLua = R"lua(
local function not_loaded(version, code)
  local is_newer = version and tonumber(string.sub(version, 3)) > 1
  if is_newer then return {9, KEYS[1], version, ARGV[#ARGV]} end
  return {code, ARGV[#ARGV]}
end
local function load(key)
  local clock = redis.call('TIME')
  local us = clock[1] * 1000000 + clock[2]
  local now = math.floor(us / 1000)
  local text = redis.call('GET', key)
  local all = {limit = 0, token = 0, now = now, us = us, held = 0, first = nil}
  if not text then return all end
  local limit, token, from = string.match(text, '^dlock:permits v=1 limit=(%d+) token=(%d+)\n()')
  if not limit then return nil, string.match(text, '^dlock:permits (v=%d+)') end
  all.limit, all.token = tonumber(limit), tonumber(token)
  for kind, till, permits, number, since, who in
      string.gmatch(string.sub(text, from), '(%a) (%d+) (%d+) (%d+) (%d+) ([^\n]*)\n') do
    if tonumber(till) > now then
      local mark, owner = string.match(who, '^broken:(%S*) (.*)$')
      local id = kind == 'w' and string.sub(who, 38, 73) or string.sub(owner or who, 1, 36)
      all[#all + 1] = {kind = kind, till = tonumber(till), permits = tonumber(permits),
                       token = number, since = since, who = who, id = id, mark = mark}
      if kind == 'h' then all.held = all.held + tonumber(permits) end
    end
  end
  return all
end
local function store(key, all)
  local lines = {string.format('dlock:permits v=1 limit=%.0f token=%.0f\n', all.limit, all.token)}
  for _, one in ipairs(all) do
    lines[#lines + 1] = string.format('%s %.0f %.0f %s %s %s\n', one.kind, one.till, one.permits,
                                      one.token, one.since, one.who)
  end
  redis.call('SET', key, table.concat(lines))
end
local function place(all, id)
  for at, one in ipairs(all) do
    if one.id == id then return at, one end
  end
end
local function take_out(all, id)
  local at, one = place(all, id)
  if not at then return nil end
  table.remove(all, at)
  if one.kind == 'h' then all.held = all.held - one.permits end
  return one
end
-- 0: its process is not there; where PUBLISH is not allowed, waiters poll
local function notify(prefix, one)
  return redis.pcall('PUBLISH', prefix .. string.sub(one.who, 1, 36), one.id) ~= 0
end
-- `used`: the limit, to notify none that fits
local function notify_front(all, prefix, used)
  local rank, at = 0, 1
  while at <= #all and (rank < 9 or used < all.limit) do
    local one = all[at]
    local waits = one.kind == 'w'
    local near = all.now + one.token
    local is_far = waits and rank < 9 and one.till > near
    local fits = waits and used + one.permits <= all.limit
    if (fits or is_far) and not notify(prefix, one) then
      table.remove(all, at)
    else
      if is_far then one.till = near end
      if waits then used, rank = used + one.permits, rank + 1 end
      at = at + 1
    end
  end
end
)lua";

// KEYS permits; ARGV owner, permits, limit (0: the store's), lease ms, min token, queue 0|1,
// waiter, patience ms, channel prefix, near ms, arrival (the first time nothing), until (server
// time, us), tag
// -> {1|2, token, tag} | {0, place, ms left, arrival, tag} | {3, tag} | {6, limit, tag} | {7, tag}
//    | {10, server time us, tag}
//
// `ms left`: until a permit of another acquisition, or a waiter before it, may be gone.
// 6: the limit there is another (0: there is none), or below what is asked for; nothing of it is
// left. 7: another program's text. 10: it was executed after `until`, and changed nothing.
inline constexpr std::string_view kAcquirePermits = R"lua(
local tag = ARGV[#ARGV]
local id = string.sub(ARGV[1], 1, 36)
local permits = tonumber(ARGV[2])
local all, version = load(KEYS[1])
if not all then return not_loaded(version, 7) end
local at, mine = place(all, id)
if mine and mine.kind == 'b' then
  table.remove(all, at)
  at, mine = nil, nil
end
if mine and mine.mark then at, mine = nil, nil end
if mine and mine.kind == 'h' then
  mine.till = all.now + ARGV[4]
  store(KEYS[1], all)
  return {2, mine.token, tag}
end
if all.us - ARGV[12] > 0 then return {10, string.format('%.0f', all.us), tag} end
local asked = tonumber(ARGV[3])
local refused = all.limit == 0 and asked == 0
if all.limit > 0 then refused = permits > all.limit or (asked > 0 and asked ~= all.limit) end
if refused then
  if take_out(all, id) then
    notify_front(all, ARGV[9], all.held)
    store(KEYS[1], all)
  end
  return {6, all.limit, tag}
end
if all.limit == 0 then all.limit = asked end
if not at then
  at = #all + 1
  for number, one in ipairs(all) do
    local is_later = ARGV[11] ~= '' and tonumber(one.since) > tonumber(ARGV[11])
    if one.kind == 'w' and is_later then
      at = number
      break
    end
  end
end
local before = 0
local left = -1
for number, one in ipairs(all) do
  local is_before = one.kind == 'w' and number < at
  if is_before then before = before + 1 end
  if is_before or one.kind ~= 'w' then
    if left < 0 or one.till - all.now < left then left = one.till - all.now end
  end
end
if before == 0 and all.held + permits <= all.limit then
  take_out(all, id)
  local token = math.max(all.token + 1, all.us, tonumber(ARGV[5]) + 1)
  if not (token < 9007199254740992) then return {3, tag} end
  all.token = token
  all.held = all.held + permits
  token = string.format('%.0f', token)
  table.insert(all, at, {kind = 'h', till = all.now + ARGV[4], permits = permits,
                           token = token, since = string.format('%.0f', all.now),
                           who = ARGV[1], id = id})
  notify_front(all, ARGV[9], all.held)
  store(KEYS[1], all)
  return {1, token, tag}
end
if ARGV[6] == '0' then
  if take_out(all, id) then store(KEYS[1], all) end
  return {0, -1, left, '', tag}
end
if not mine then
  local since = ARGV[11] ~= '' and ARGV[11] or string.format('%.0f', all.now)
  mine = {kind = 'w', permits = permits, since = since, who = ARGV[7], id = id}
  table.insert(all, at, mine)
end
mine.token = ARGV[10]
mine.till = all.now + ARGV[before < 9 and 10 or 8]
notify_front(all, ARGV[9], all.limit)
store(KEYS[1], all)
return {0, before, left, mine.since, tag}
)lua";

// KEYS permits; ARGV owner, lease ms, token, tag
// -> {1 renewed | 0 gone, tag} | {3 broken by an operator, mark, tag}
//
// The script always writes, so that a replica refuses it: a replica's answer does not prove that
// the permits are gone.
inline constexpr std::string_view kRenewPermits = R"lua(
local all, version = load(KEYS[1])
if not all then return not_loaded(version, 0) end
local _, mine = place(all, string.sub(ARGV[1], 1, 36))
if mine and mine.kind == 'h' and mine.token == ARGV[3] and not mine.mark then
  mine.till = all.now + ARGV[2]
  store(KEYS[1], all)
  return {1, ARGV[4]}
end
if all.limit > 0 then store(KEYS[1], all) else redis.call('DEL', KEYS[1]) end
if mine and mine.token == ARGV[3] and (mine.mark or mine.kind == 'b') then
  return {3, mine.mark or string.match(mine.who, ' (%S*)$') or '', ARGV[4]}
end
return {0, ARGV[4]}
)lua";

// KEYS permits; ARGV owner, channel prefix, tag -> {1 released | 0 was not ours, tag}
//
// Also removes a waiter.
inline constexpr std::string_view kReleasePermits = R"lua(
local all, version = load(KEYS[1])
if not all then return not_loaded(version, 0) end
local mine = take_out(all, string.sub(ARGV[1], 1, 36))
if not mine then return {0, ARGV[3]} end
notify_front(all, ARGV[2], all.held)
store(KEYS[1], all)
return {mine.kind == 'h' and 1 or 0, ARGV[3]}
)lua";

// KEYS permits; ARGV token, channel prefix, mark, at once 0|1, tag
// -> {1 evicted | 5 marked, ms left, tag} | {0 nobody holds any | 2 with other tokens | 7, tag}
//
// Evicted, it stays until its holder has surely asked for it.
inline constexpr std::string_view kEvictPermits = R"lua(
local tag = ARGV[#ARGV]
local all, version = load(KEYS[1])
if not all then return not_loaded(version, 7) end
if all.held == 0 then return {0, tag} end
for _, one in ipairs(all) do
  if one.kind == 'h' and one.token == ARGV[1] then
    local left = one.till - all.now
    local owner = string.match(one.who, '^broken:%S* (.*)$') or one.who
    if ARGV[4] ~= '1' then
      if one.mark then return {5, left, tag} end
      one.who = 'broken:' .. ARGV[3] .. ' ' .. owner
      store(KEYS[1], all)
      local instance = string.match(owner, ',([%x-]+)$')
      if instance and #instance == 36 then
        redis.pcall('PUBLISH', ARGV[2] .. instance, one.id .. ' broken')
      end
      return {5, left, tag}
    end
    one.kind = 'b'
    one.who = owner .. ' ' .. ARGV[3]
    one.till = one.till + 1000
    all.held = all.held - one.permits
    notify_front(all, ARGV[2], all.held)
    store(KEYS[1], all)
    return {1, left, tag}
  end
end
return {2, tag}
)lua";

// KEYS permits; ARGV tag -> {text, server time ms, tag}; writes nothing
inline constexpr std::string_view kInspectPermits = R"lua(
local clock = redis.call('TIME')
local now = string.format('%.0f', math.floor(clock[1] * 1000 + clock[2] / 1000))
return {redis.call('GET', KEYS[1]) or '', now, ARGV[1]}
)lua";

// KEYS permits; ARGV limit, channel prefix, tag -> {1 | 7, tag}
inline constexpr std::string_view kSetLimit = R"lua(
local all, version = load(KEYS[1])
if not all then return not_loaded(version, 7) end
all.limit = tonumber(ARGV[1])
for _, one in ipairs(all) do
  if one.kind == 'w' then notify(ARGV[2], one) end
end
store(KEYS[1], all)
return {1, ARGV[3]}
)lua";

}  // namespace dlock::redis
