// SPDX-License-Identifier: Apache-2.0
#include "backends/redis/scripts/adoption_scripts.hpp"

namespace dlock::redis {
namespace {

// KEYS lock grant alive; ARGV token:owner, proof, ms, tag -> {1 done | 0 not ours, tag}
//
// A replica's answer may be old, so each script here makes a write, which a replica refuses. HDEL
// of an empty field changes nothing.
constexpr std::string_view kOffer = R"lua(
local held = redis.call('GET', KEYS[1])
if held and held == ARGV[1] then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
  return {1, ARGV[4]}
end
redis.call('HDEL', KEYS[3], '')
return {0, ARGV[4]}
)lua";

// KEYS lock fence grant alive; ARGV owner, lease ms, min token, fence ms, `token:id,` of the
// exported grant, proof, until (server time, us), tag
// -> {1 | 2 ours already, token, tag} | {0, the value there ('' nobody has it), tag}
//    | {3 no token left, tag} | {10 executed after `until`, server time us, tag}
//
// The token is assigned as in acquire. It is above the exported one, also if the fence has been
// lost.
constexpr std::string_view kAdopt = R"lua(
local tag = ARGV[#ARGV]
local held = redis.call('GET', KEYS[1])
local colon = held and string.find(held, ':', 1, true)
if colon and string.sub(held, colon + 1) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {2, string.sub(held, 1, colon - 1), tag}
end
local is_it = held and string.sub(held, 1, #ARGV[5]) == ARGV[5]
if not is_it or redis.call('GET', KEYS[3]) ~= ARGV[6] then
  redis.call('HDEL', KEYS[4], '')
  return {0, held or '', tag}
end
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
if us - ARGV[7] > 0 then return {10, string.format('%.0f', us), tag} end
local exported = tonumber(string.sub(held, 1, colon - 1))
local fence = redis.call('GET', KEYS[2]) or '0'
if is_newer(fence) then return {9, KEYS[2], fence, tag} end
local last = math.max(tonumber(fence) or 0, exported, ARGV[3])
local token = math.max(last + 1, us)
if not (token < 9007199254740992) then return {3, tag} end
local memory = string.format('%.0f', ARGV[4] + math.max(token - us, 0) / 1000)
token = string.format('%.0f', token)
redis.call('SET', KEYS[1], token .. ':' .. ARGV[1], 'PX', ARGV[2])
redis.call('SET', KEYS[2], token, 'PX', memory)
redis.call('DEL', KEYS[3])
return {1, token, tag}
)lua";

}  // namespace

std::string_view offer_script() { return kOffer; }

std::string_view adopt_script() { return kAdopt; }

}  // namespace dlock::redis
