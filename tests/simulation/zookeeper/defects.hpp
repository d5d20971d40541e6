// SPDX-License-Identifier: Apache-2.0
//
// The defects that can be planted into backends/zookeeper (core/planted.hpp).
#pragma once

#include <array>
#include <string_view>

namespace dlock::simulation::planted::zookeeper {

struct Defect {
  std::string_view name;
  std::string_view what;
};

inline constexpr auto kDefects = std::to_array<Defect>({
    {"zk_deadline_two_thirds_only", "the deadline is stamp + 2T/3, whatever was heard before"},
    {"zk_deadline_full_timeout", "the deadline is stamp + T"},
    {"zk_deadline_from_reply", "the deadline counts from the reply, without a base"},
    {"zk_base_by_sending", "the deadline's base is chosen by its sending, not by its answer"},
    {"zk_sync_as_heartbeat", "held locks are proven by sync, and any answer counts as a proof"},
    {"zk_read_as_heartbeat", "held locks are proven by a read, and any answer counts as a proof"},
    {"zk_trust_any_predecessor", "when the watched node goes, we are first, whatever it was"},
    {"zk_no_sync_after_lost_reply", "after a lost reply a lagging server's listing is believed"},
    {"zk_sync_after_lost_reply", "after a lost reply `sync` is taken for a barrier, as it is none"},
    {"zk_adopt_dying_session", "our id on a node is enough, whichever session it belongs to"},
    {"zk_token_is_sequence", "the token is the sequence number, which begins again"},
    {"zk_missed_wakeup", "a predecessor that went between listing and watching is waited for"},
    {"zk_cancelled_left_behind", "a claim that is withdrawn leaves its node in the queue"},
    {"zk_busy_left_behind", "a try that found the lock taken forgets a node whose delete was lost"},
    {"zk_delete_not_retried", "a release whose reply was lost counts as done"},
    {"zk_keep_duplicate", "of several copies of our create only one is ever seen"},
    {"zk_session_gone_not_told", "claims do not learn that their session is over"},
    {"zk_order_by_suffix_at_counter_end", "at the counter's end the queue is ordered by number"},
    {"zk_own_watch_ignored", "what happens to our own node is not noticed"},
    {"zk_watch_leak", "watches that nobody needs stay on the server"},
    {"zk_seal_without_compare", "a seal is made, whether or not our node still is there"},
    {"zk_opening_without_raise", "a lock that is opened gives tokens as if it never was away"},
    {"zk_absent_decides", "who finds the one before it gone does not look what took its place"},
    {"zk_record_from_a_replica", "a record is read as the nearest server has it"},
});

}  // namespace dlock::simulation::planted::zookeeper
