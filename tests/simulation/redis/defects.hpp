// SPDX-License-Identifier: Apache-2.0
//
// The defects that can be planted in the Redis backend (core/planted.hpp).
#pragma once

#include <array>
#include <string_view>

namespace dlock::simulation::redis {

struct Defect {
  std::string_view name;
  std::string_view what;
};

inline constexpr std::array<Defect, 25> kDefects{{
    {"redis_deadline_from_reply", "a validity counts from the answer, not from before sending"},
    {"redis_renew_recreates", "renewing a lock that is gone makes it anew"},
    {"redis_blind_release", "a release removes the key, whoever's it is"},
    {"redis_blind_renew", "a renewal prolongs the key, whoever's it is, and counts as ours"},
    {"redis_token_incr_only", "the token is a plain counter, which data loss sets back"},
    {"redis_token_ignores_fence", "the token is the server's clock, which may go back"},
    {"redis_setnx_then_expire", "the key's expiry is set by a second request"},
    {"redis_lost_wakeup", "a waiter never looks by itself"},
    {"redis_subscribe_without_recheck",
     "a waiter trusts its subscription, and does not look when it stands"},
    {"redis_withdraw_forgotten", "a claim that was given up is not taken off the server"},
    {"redis_unknown_taken_as_busy", "an acquire without an answer counts as held by another"},
    {"redis_same_owner_for_all", "the owner in the key is the process, not the claim"},
    {"redis_wake_reserved_forever", "a free lock stays reserved for a waiter that was woken"},
    {"redis_run_id_ignored", "another server behind the address is not noticed"},
    {"redis_gone_taken_as_extended", "a renewal that finds nothing counts as done"},
    {"redis_old_connection_not_killed", "late requests of a dead connection are still carried out"},
    {"redis_fence_forgotten", "the last token is forgotten with the lease"},
    {"redis_lease_halved", "the server is asked for half the lease that is believed"},
    {"redis_answers_mixed_up", "in a batch of renewals one lock's answer counts for another"},
    {"redis_silence_taken_as_extended", "a renewal without an answer counts as done"},
    {"redis_release_not_repeated", "a release without an answer counts as done"},
    {"redis_release_wakes_nobody", "a release tells no waiter"},
    {"redis_seal_without_compare", "a seal replaces whatever stands there"},
    {"redis_seal_beside_the_lock", "a record has a key of its own beside the lock's"},
    {"redis_opening_without_raise", "a lock that is opened gives tokens as if it never was away"},
}};

}  // namespace dlock::simulation::redis

namespace dlock::simulation::planted::redis {
using simulation::redis::kDefects;
}
