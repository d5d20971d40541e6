// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/scripts/readers_scripts.hpp"

#include <fmt/format.h>

#include "backends/redis/scripts/alive_lua.hpp"
#include "backends/redis/scripts/fair_script.hpp"
#include "backends/redis/scripts/pieces.hpp"
#include "backends/redis/scripts/scripts.hpp"

namespace dlock::redis {
namespace {

// A reader waits behind each live writer that arrived before it. Dead writers are dropped on the
// way: those that polled too long ago, and those whose process is silent (kPresence).
// `writer_silent_in`: ms until the writer in the way counts as silent, unless its process sends
// another word.
constexpr std::string_view kWriterBeforeLua = R"lua(
local writer_silent_in
local function is_silent(waiter, patience, kind, us)
  if kind ~= 'handed' and kind ~= 'present' then return false end
  local here = redis.pcall('GET', 'dlock:here%' .. string.sub(waiter, 1, 36))
  if type(here) ~= 'string' then return false end
  local word, why_not = last_word(here, patience, us)
  local fresh_until = tonumber(string.match(here, '^%d+ (%d+)'))
  writer_silent_in = math.max(word and fresh_until - us / 1000 or 0, 0) + 500
  return not word and why_not == 2
end
local function writer_before(queue, alive, me, arrival, us)
  local now = us / 1000
  local gone = false
  local from = 0
  while true do
    local some = redis.call('ZRANGE', queue, from, from + 63)
    for _, waiter in ipairs(some) do
      if waiter == me then return false, gone end
      if arrival ~= '' and tonumber(redis.call('ZSCORE', queue, waiter)) > tonumber(arrival) then
        return false, gone
      end
      local patience, kind = alive_until(redis.call('HGET', alive, waiter))
      if patience <= now or is_silent(waiter, patience, kind, us) then
        redis.call('ZREM', queue, waiter)
        redis.call('HDEL', alive, waiter)
        gone = true
      elseif kind ~= 'reads' then
        return true, gone
      else
        from = from + 1
      end
    end
    if #some < 64 then return false, gone end
  end
end
)lua";

// Keys, arguments and answers as of acquire under `fair` (scripts.cpp, fair_script.hpp).
//
// A reader joins other readers unless a writer waits before it. It acquires a free lock in turn.
// The first reader notifies the others up to the next writer. So does a reader that drops a dead
// writer.
constexpr std::string_view kAcquireReaders = R"lua(
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = us / 1000
local all, version = nil, nil
if held then all, version = readers_in(held, now) end
if is_newer(version) then return {9, KEYS[1], version, tag} end
local mine = all and reader_of(all, owner)
if mine and (tonumber(all[mine].token) or 0) > tonumber(ARGV[3]) then
  all[mine].till = math.ceil(now) + ARGV[2]
  keep_readers(KEYS[1], all, now)
  redis.pcall('ZREM', KEYS[3], me)
  redis.pcall('HDEL', KEYS[4], me)
  return {2, all[mine].token, tag}
end
if us - ARGV[6] > 0 then return {10, string.format('%.0f', us), tag} end
if all and #all == 0 then
  redis.call('DEL', KEYS[1])
  held, all = false, nil
end
local prefix = string.match(ARGV[8], '^%S+')
local fresh = arrival == ''
local first, first_left = first_try(aside[2], now)
local may, gone = mine, false
if all and not mine then
  local before
  before, gone = writer_before(KEYS[3], KEYS[4], me, arrival, us)
  may = not before
end
-- (turn)
if not held and (not first or first_left <= 0 or first == me) then may = true end
if may then
  if is_newer(aside[1]) then return {9, KEYS[2], aside[1], tag} end
  local token = math.max((tonumber(aside[1] or '0') or 0) + 1, us, tonumber(ARGV[3]) + 1)
  if not held then redis.call('GET', KEYS[1]) end
  if not (token < 9007199254740992) then return {3, tag} end
  local memory = string.format('%.0f', ARGV[4] + math.max(token - us, 0) / 1000)
  token = string.format('%.0f', token)
  local opened = not all or gone
  all = all or {}
  all[mine or #all + 1] = {till = math.ceil(now) + ARGV[2], token = token,
                           since = string.format('%.0f', math.floor(now)), owner = owner}
  keep_readers(KEYS[1], all, now)
  redis.call('SET', KEYS[2], token, 'PX', memory)
  if aside[2] then redis.call('DEL', KEYS[5]) end
  if queued == 'yes' then
    redis.pcall('ZREM', KEYS[3], me)
    redis.pcall('HDEL', KEYS[4], me)
  end
  if opened then tell_readers(KEYS[3], KEYS[4], prefix, now) end
  return {1, token, tag}
end
if gone then tell_readers(KEYS[3], KEYS[4], prefix, now) end
)lua";

// KEYS lock queue alive broken; ARGV owner, lease ms, token, steps down 0|1, channel prefix, tag
// -> as of renew
//
// A writer whose downgrade is under way is renewed as a writer or as a reader: it may not know
// which of them it is.
constexpr std::string_view kRenewReaders = R"lua(
local tag = ARGV[#ARGV]
local held = redis.call('GET', KEYS[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local all, version = nil, nil
if held then all, version = readers_in(held, now) end
if is_newer(version) then return {9, KEYS[1], version, tag} end
local mine = all and reader_of(all, ARGV[1])
if mine and all[mine].token == ARGV[3] then
  all[mine].till = math.ceil(now) + ARGV[2]
  keep_readers(KEYS[1], all, now)
  return {1, tag}
end
if held and held == ARGV[3] .. ':' .. ARGV[1] then
  if ARGV[4] == '0' then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return {1, tag}
  end
  local since = string.format('%.0f', math.floor(math.min(tonumber(ARGV[3]) / 1000, now)))
  all = {{till = math.ceil(now) + ARGV[2], token = ARGV[3], since = since, owner = ARGV[1]}}
  keep_readers(KEYS[1], all, now)
  tell_readers(KEYS[2], KEYS[3], ARGV[5], now)
  return {1, tag}
end
local probe = redis.pcall('HDEL', KEYS[3], '')
if type(probe) == 'table' and not string.find(probe.err, 'WRONGTYPE', 1, true) then
  redis.call('HDEL', KEYS[3], '')
end
local ours = ARGV[3] .. ':' .. ARGV[1]
local broken = redis.call('GET', KEYS[4]) or ''
if all then
  for _, one in ipairs(all) do
    local mark, owner = string.match(one.owner, '^broken:(%S*) (.*)$')
    if mark and one.token .. ':' .. owner == ours then return {3, mark, tag} end
  end
end
for mark, value in string.gmatch((held or '') .. '\n' .. broken, 'dlock:broken:([^\n]*)\n([^\n]*)') do
  if value == ours then return {3, mark, tag} end
end
if string.find(broken, ours, 1, true) then return {3, '', tag} end
if held and not all then return {2, tag} end
return {0, tag}
)lua";

// Keys, arguments and answers as of release.
constexpr std::string_view kReleaseReaders = R"lua(
local stored = redis.call('MGET', KEYS[1], KEYS[4])
local held, reserved, left, heads = stored[1], stored[2], 0, nil
local ours = 0
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local all, version = nil, nil
if held then all, version = readers_in(held, now) end
if is_newer(version) then return {9, KEYS[1], version, ARGV[4]} end
if all then
  for at = #all, 1, -1 do
    if unmarked(all[at].owner) == ARGV[1] then
      ours = 1
      table.remove(all, at)
    end
  end
  if ours == 1 and #all > 0 then keep_readers(KEYS[1], all, now) end
  if #all == 0 then
    redis.call('DEL', KEYS[1])
    held = false
  end
elseif held then
  local value = string.match(held, '^dlock:broken:[^\n]*\n(.*)$') or held
  local colon = string.find(value, ':', 1, true)
  if colon and string.sub(value, colon + 1) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    held = false
    ours = 1
  end
else
  redis.call('GET', KEYS[1])
end
)lua";

// Runs for a writer that gives up.
constexpr std::string_view kLetReadersPassLua = R"lua(
if held and string.sub(held, 1, 14) == 'dlock:readers ' then
  local clock = redis.call('TIME')
  tell_readers(KEYS[2], KEYS[3], string.match(ARGV[3], '^%S+'), clock[1] * 1000 + clock[2] / 1000)
end
)lua";

constexpr std::string_view kPollOnSilenceLua = R"lua(
if writer_silent_in and (left < 0 or writer_silent_in < left) then
  left = math.ceil(writer_silent_in)
end
)lua";

std::string acquire_text(const ScriptPieces& pieces) {
  auto script = fmt::format("{}{}{}{}{}{}{}{}{}{}{}", pieces.look, kAliveLua, pieces.first_try,
                            pieces.hand_over, pieces.wake, kComesBeforeLua, kReadersLua,
                            kWriterBeforeLua, pieces.how, kAcquireReaders, pieces.queue_up);
  return acquire_in_turn(with_piece(std::move(script), "-- (silent)\n", kPollOnSilenceLua));
}

std::string waking_text(const ScriptPieces& pieces, std::string_view release) {
  return fmt::format("{}{}{}{}{}{}{}", kAliveLua, pieces.first_try, pieces.hand_over, pieces.wake,
                     kReadersLua, release, pieces.pass_on);
}

std::string withdrawing_text(const ScriptPieces& pieces) {
  return fmt::format("{}{}", pieces.find_ours, pieces.release);
}

}  // namespace

ReaderScripts::ReaderScripts()
    : acquire(acquire_text(script_pieces())),
      renew(fmt::format("{}{}{}", kAliveLua, kReadersLua, kRenewReaders)),
      release(waking_text(script_pieces(), kReleaseReaders)),
      withdraw(with_piece(waking_text(script_pieces(), withdrawing_text(script_pieces())),
                          "-- (readers)\n", kLetReadersPassLua)) {}

const ReaderScripts& reader_scripts() {
  // Never destroyed, as those of writers.
  static const auto& all = *new ReaderScripts;
  return all;
}

}  // namespace dlock::redis
