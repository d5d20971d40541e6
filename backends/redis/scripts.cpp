// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/scripts.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <stdexcept>

#ifdef DLOCK_PLANTING
#include "backends/redis/planted_scripts.hpp"
#endif

namespace dlock::redis {
namespace {

// KEYS lock fence queue alive next; ARGV owner, lease ms, min token, fence ms, queue 0|1, waiter,
// arrival ('' the first time), patience ms, cleanup 0|1, tag
// -> {1|2, token, tag} | {0, rank, ms left, arrival, tag} | {3, tag} | {4, record, arrival, tag}
//
// The token is above the last one, above min token, and no less than the server's clock, so it
// keeps rising when the fence key is lost. One that is ahead of the clock is remembered until the
// clock has caught up with it. Who was woken (`next`) has the first try.
constexpr std::string_view kAcquire = R"lua(
local tag = ARGV[10]
local held = redis.call('GET', KEYS[1])
if held then
  local colon = string.find(held, ':', 1, true)
  if colon and string.sub(held, colon + 1) == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('ZREM', KEYS[3], ARGV[6])
    redis.call('ZREM', KEYS[4], ARGV[6])
    return {2, string.sub(held, 1, colon - 1), tag}
  end
end
local aside = redis.call('MGET', KEYS[2], KEYS[5])
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
if not held and (not aside[2] or aside[2] == ARGV[6]) then
  local token = math.max((tonumber(aside[1] or '0') or 0) + 1, us, tonumber(ARGV[3]) + 1)
  if not (token < 9007199254740992) then return {3, tag} end
  local memory = string.format('%.0f', ARGV[4] + math.max(token - us, 0) / 1000)
  token = string.format('%.0f', token)
  redis.call('SET', KEYS[2], token, 'PX', memory)
  redis.call('SET', KEYS[1], token .. ':' .. ARGV[1], 'PX', ARGV[2], 'NX')
  if aside[2] then redis.call('DEL', KEYS[5]) end
  if ARGV[9] == '1' then
    redis.call('ZREM', KEYS[3], ARGV[6])
    redis.call('ZREM', KEYS[4], ARGV[6])
  end
  return {1, token, tag}
end
local left = -1
if held then left = redis.call('PTTL', KEYS[1]) end
local sealed = held and string.sub(held, 1, 13) == 'dlock:record:'
if ARGV[5] ~= '1' then
  if sealed then return {4, string.sub(held, 14), '', tag} end
  return {0, -1, left, '', tag}
end
local arrival = ARGV[7]
if arrival == '' then arrival = string.format('%.0f', us) end
redis.call('ZADD', KEYS[3], arrival, ARGV[6])
redis.call('ZADD', KEYS[4], string.format('%.0f', us / 1000 + ARGV[8]), ARGV[6])
redis.call('PEXPIRE', KEYS[3], ARGV[8] * 2)
redis.call('PEXPIRE', KEYS[4], ARGV[8] * 2)
if sealed then return {4, string.sub(held, 14), arrival, tag} end
return {0, redis.call('ZRANK', KEYS[3], ARGV[6]), left, arrival, tag}
)lua";

// KEYS lock alive broken; ARGV owner, lease ms, tag
// -> {1 renewed | 0 gone | 2 somebody else's | 3 broken by an operator, tag}
//
// Removing what is not there writes nothing, but a replica refuses it: its word that the lock is
// gone would be no proof.
constexpr std::string_view kRenew = R"lua(
local held = redis.call('GET', KEYS[1])
if held then
  local colon = string.find(held, ':', 1, true)
  if colon and string.sub(held, colon + 1) == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return {1, ARGV[3]}
  end
end
redis.call('ZREM', KEYS[2], '')
local broken = redis.call('GET', KEYS[3])
if broken and string.sub(broken, -#ARGV[1] - 1) == ':' .. ARGV[1] then return {3, ARGV[3]} end
if held then return {2, ARGV[3]} end
return {0, ARGV[3]}
)lua";

// Wakes the first waiter who can hear it and reserves the free lock for it, shortly. The dead are
// dropped on the way, at most 64 at a time. Where PUBLISH is not allowed, waiters poll.
constexpr std::string_view kWake = R"lua(
local function wake(queue, alive, next_key, prefix, reserve)
  local now = nil
  for _ = 1, 64 do
    local head = redis.call('ZRANGE', queue, 0, 0)[1]
    if not head then return end
    if not now then
      local clock = redis.call('TIME')
      now = clock[1] * 1000 + math.floor(clock[2] / 1000)
    end
    local patience = redis.call('ZSCORE', alive, head)
    redis.call('ZREM', queue, head)
    redis.call('ZREM', alive, head)
    if patience and tonumber(patience) > now then
      local heard = redis.pcall('PUBLISH', prefix .. string.sub(head, 1, 36),
                                string.sub(head, 38, 73))
      if type(heard) ~= 'number' then return end
      if heard > 0 then
        redis.pcall('SET', next_key, head, 'PX', reserve)
        return
      end
    end
  end
end
)lua";

// KEYS lock queue alive next; ARGV owner, waiter, channel prefix, reserve ms, tag
// -> {1 released | 0 was not ours, tag}
//
// Also withdraws a waiter; one that was woken already passes the news on.
constexpr std::string_view kRelease = R"lua(
local held = redis.call('GET', KEYS[1])
local ours = 0
if held then
  local colon = string.find(held, ':', 1, true)
  if colon and string.sub(held, colon + 1) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    held = false
    ours = 1
  end
end
if ARGV[2] ~= '' then
  redis.call('ZREM', KEYS[2], ARGV[2])
  redis.call('ZREM', KEYS[3], ARGV[2])
end
local reserved = redis.call('GET', KEYS[4])
if reserved and reserved == ARGV[2] then
  redis.call('DEL', KEYS[4])
  reserved = false
end
if not held and not reserved then wake(KEYS[2], KEYS[3], KEYS[4], ARGV[3], ARGV[4]) end
return {ours, ARGV[5]}
)lua";

// KEYS lock queue alive next broken; ARGV token, channel prefix, reserve ms, tag
// -> {1 evicted | 0 nobody holds it | 3 a record stands there, tag} | {2, the value there, tag}
//
// What is removed is kept aside until its holder has surely asked for it.
constexpr std::string_view kEvict = R"lua(
local held = redis.call('GET', KEYS[1])
if not held then return {0, ARGV[4]} end
if string.sub(held, 1, 13) == 'dlock:record:' then return {3, ARGV[4]} end
local colon = string.find(held, ':', 1, true)
if not colon or string.sub(held, 1, colon - 1) ~= ARGV[1] then return {2, held, ARGV[4]} end
local left = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[5], held, 'PX', math.max(left, 0) + 1000)
redis.call('DEL', KEYS[1])
wake(KEYS[2], KEYS[3], KEYS[4], ARGV[2], ARGV[3])
return {1, ARGV[4]}
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

// A record has changed: all look again. Who gets there first when the lock is open has it; the
// others keep their places.
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

// False: no token would be left.
constexpr std::string_view kRaiseFence = R"lua(
local function raise(fence, above, memory)
  local clock = redis.call('TIME')
  local us = clock[1] * 1000000 + clock[2]
  local token = math.max(tonumber(redis.call('GET', fence) or '0') or 0, tonumber(above))
  if not (token < 9007199254740991) then return false end
  memory = string.format('%.0f', memory + math.max(token - us, 0) / 1000)
  redis.call('SET', fence, string.format('%.0f', token), 'PX', memory)
  return true
end
)lua";

// Of the scripts below, what comes first: {1 done | 0 no record there, or not ours | 3 no token
// left, tag} | {2, the record there, tag}

// KEYS lock alive; ARGV tag
//
// What a replica answers may be old: it refuses the writing of nothing.
constexpr std::string_view kRecord = R"lua(
redis.call('ZREM', KEYS[2], '')
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
local held = redis.call('GET', KEYS[1])
if not held then return {0, ARGV[4]} end
if string.sub(held, 1, 13) == 'dlock:record:' then return {2, string.sub(held, 14), ARGV[4]} end
if held == ARGV[1] then
  redis.call('SET', KEYS[1], 'dlock:record:' .. ARGV[2])
  wake_all(KEYS[2], KEYS[3], ARGV[3])
  return {1, ARGV[4]}
end
return {0, ARGV[4]}
)lua";

// KEYS lock fence queue next; ARGV from, to ('' opens), min token, fence ms, channel prefix, tag
constexpr std::string_view kSetRecord = R"lua(
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 1, 13) ~= 'dlock:record:' then return {0, ARGV[6]} end
if string.sub(held, 14) ~= ARGV[1] then return {2, string.sub(held, 14), ARGV[6]} end
if ARGV[2] ~= '' then
  redis.call('SET', KEYS[1], 'dlock:record:' .. ARGV[2])
else
  if not raise(KEYS[2], ARGV[3], ARGV[4]) then return {3, ARGV[6]} end
  redis.call('DEL', KEYS[1])
end
wake_all(KEYS[3], KEYS[4], ARGV[5])
return {1, ARGV[6]}
)lua";

// KEYS lock fence; ARGV owner, min token, fence ms, tag
constexpr std::string_view kRaise = R"lua(
local held = redis.call('GET', KEYS[1])
local colon = held and string.find(held, ':', 1, true)
if not colon or string.sub(held, colon + 1) ~= ARGV[1] then return {0, ARGV[4]} end
if not raise(KEYS[2], ARGV[2], ARGV[3]) then return {3, ARGV[4]} end
return {1, ARGV[4]}
)lua";

// KEYS note alive; ARGV tag
constexpr std::string_view kNote = R"lua(
redis.call('ZREM', KEYS[2], '')
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
    : acquire(std::string(kAcquire)),
      renew(std::string(kRenew)),
      release(std::string(kWake) + std::string(kRelease)),
      evict(std::string(kWake) + std::string(kEvict)),
      inspect(std::string(kInspect)),
      record(std::string(kRecord)),
      seal(std::string(kWakeAll) + std::string(kSeal)),
      set_record(std::string(kWakeAll) + std::string(kRaiseFence) + std::string(kSetRecord)),
      raise(std::string(kRaiseFence) + std::string(kRaise)),
      note(std::string(kNote)),
      set_note(std::string(kSetNote)) {}

const Scripts& scripts() {
  static const Scripts all;
#ifdef DLOCK_PLANTING
  if (const auto* planted = planted_scripts(all)) return *planted;
#endif
  return all;
}

}  // namespace dlock::redis
