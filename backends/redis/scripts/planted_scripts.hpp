// SPDX-License-Identifier: Apache-2.0
//
// Scripts with a planted defect (core/planted.hpp): the production text with one piece replaced.
// Compiled in the simulation's own copy of the backend only.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "backends/redis/scripts/scripts.hpp"
#include "core/planted.hpp"

namespace dlock::redis {

inline Scripts with_defect(Scripts all, Script Scripts::*which, std::string_view piece,
                           std::string_view by) {
  auto text = (all.*which).text;
  const auto place = text.find(piece);
  if (place == std::string::npos) throw std::logic_error("a planted defect's place has gone");
  all.*which = Script(text.replace(place, piece.size(), by));
  return all;
}

/// Null: no defect of a script is planted.
inline const Scripts* planted_scripts(const Scripts& all) {
  if (DLOCK_PLANTED("redis_renew_recreates")) {
    static const auto& bad = *new Scripts(with_defect(
        all, &Scripts::renew, "return {0, ARGV[3]}",
        "local clock = redis.call('TIME')\n"
        "local us = string.format('%.0f', clock[1] * 1000000 + clock[2])\n"
        "redis.call('SET', KEYS[1], us .. ':' .. ARGV[1], 'PX', ARGV[2])\nreturn {1, ARGV[3]}"));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_blind_renew")) {
    static const auto& bad = *new Scripts(
        with_defect(all, &Scripts::renew,
                    "if colon and string.sub(held, colon + 1) == ARGV[1] then", "if colon then"));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_blind_release")) {
    static const auto& bad = *new Scripts(
        with_defect(all, &Scripts::release,
                    "if colon and string.sub(held, colon + 1) == ARGV[1] then", "if colon then"));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_token_incr_only")) {
    static const auto& bad = *new Scripts(
        with_defect(all, &Scripts::acquire, " + 1, us, tonumber(ARGV[3]) + 1)", " + 1, 1)"));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_token_ignores_fence")) {
    static const auto& bad = *new Scripts(
        with_defect(all, &Scripts::acquire, "math.max((tonumber(aside[1] or '0') or 0) + 1, us,",
                    "math.max(us,"));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_setnx_then_expire")) {
    static const auto& bad =
        *new Scripts(with_defect(all, &Scripts::acquire, "'PX', ARGV[2], 'NX')", "'NX')"));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_wake_reserved_forever")) {
    static const auto& bad = *new Scripts(
        with_defect(all, &Scripts::acquire, "not first or first_left <= 0 or first == ARGV[6]",
                    "not aside[2] or string.sub(aside[2], -#ARGV[6]) == ARGV[6]"));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_release_wakes_nobody")) {
    static const auto& bad = *new Scripts(
        with_defect(all, &Scripts::release, "if not held and not reserved then", "if false then"));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_seal_without_compare")) {
    static const auto& bad =
        *new Scripts(with_defect(all, &Scripts::seal, "if held == ARGV[1] then", "if true then"));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_seal_beside_the_lock")) {
    static const auto& bad =
        *new Scripts(with_defect(all, &Scripts::seal, "redis.call('SET', KEYS[1], ",
                                 "redis.call('DEL', KEYS[1])\n"
                                 "  redis.call('SET', KEYS[1] .. '%record', "));
    return &bad;
  }
  if (DLOCK_PLANTED("redis_opening_without_raise")) {
    static const auto& bad = *new Scripts(
        with_defect(all, &Scripts::set_record,
                    "if not raise(KEYS[2], ARGV[3], ARGV[4]) then return {3, tag} end", ""));
    return &bad;
  }
  return nullptr;
}

}  // namespace dlock::redis
