// SPDX-License-Identifier: Apache-2.0
//
// Readers on the server. While readers hold the lock, its own key has a line for each, in the order
// of their grants, and lives as long as the longest of their leases. Other programs find a lock
// that another client holds.
//
//   dlock:readers v=1
//   TILL TOKEN SINCE UUID,HOST,PID,APP       till, since: server time, ms
//   TILL TOKEN SINCE broken:MARK UUID,...    an operator breaks it: kEvict in scripts.cpp
//
// Waiting readers and writers have one queue; `%alive` has the kind of each (alive_lua.hpp). The
// scripts of writers do not read the lines of readers.
#pragma once

#include <string_view>

namespace dlock::redis {

/// readers_in returns the readers whose leases are not over. It returns nil for another text, and
/// the version of readers of another format.
inline constexpr std::string_view kReadersLua = R"lua(
local function readers_in(text, now)
  if string.sub(text, 1, 18) ~= 'dlock:readers v=1\n' then
    return nil, string.match(text, '^dlock:readers (v=%d+)')
  end
  local all = {}
  for till, token, since, owner in
      string.gmatch(string.sub(text, 19), '(%d+) (%d+) (%d+) ([^\n]*)\n') do
    if tonumber(till) > now then
      all[#all + 1] = {till = tonumber(till), token = token, since = since, owner = owner}
    end
  end
  return all
end
local function keep_readers(key, all, now)
  local lines = {'dlock:readers v=1\n'}
  local last = 0
  for _, one in ipairs(all) do
    lines[#lines + 1] = string.format('%.0f %s %s %s\n', one.till, one.token, one.since, one.owner)
    last = math.max(last, one.till)
  end
  redis.call('SET', key, table.concat(lines), 'PX', string.format('%.0f', last - math.floor(now)))
end
local function unmarked(owner)
  return string.match(owner, '^broken:%S* (.*)$') or owner
end
local function reader_of(all, owner)
  for at, one in ipairs(all) do
    if one.owner == owner then return at end
  end
end
local function reader_with(all, token)
  for at, one in ipairs(all) do
    if one.token == token then return at end
  end
end
local function tell_readers(queue, alive, prefix, now)
  for _, waiter in ipairs(redis.pcall('ZRANGE', queue, 0, -1)) do
    local text = redis.pcall('HGET', alive, waiter)
    local patience, kind = alive_until(type(text) == 'string' and text)
    if patience > now then
      if kind ~= 'reads' then return end
      local heard = redis.pcall('PUBLISH', prefix .. string.sub(waiter, 1, 36),
                                string.sub(waiter, 38, 73))
      if type(heard) ~= 'number' then return end
    end
  end
end
)lua";

}  // namespace dlock::redis
