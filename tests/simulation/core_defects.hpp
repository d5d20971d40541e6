// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "tests/simulation/defects.hpp"

namespace dlock::simulation {

inline constexpr std::array kCoreDefects = {
    Defect{"clock_stops_in_suspend", "the clock and its timers stand still while it is paused"},
    Defect{"core_stale_grant_is_taken", "a grant whose deadline has passed is handed out"},
    Defect{"core_given_up_claim_is_left", "a cancelled or timed-out claim is not withdrawn"},
    Defect{"core_unknown_is_not_done", "a request without an answer counts as not done"},
    Defect{"core_no_search_for_late_copies", "a late copy of a request is not looked for"},
    Defect{"core_margin_is_added", "the drift margin makes the deadline later"},
    Defect{"core_gone_is_ignored", "the store's word that a lock is gone is not believed"},
    Defect{"core_deadline_is_not_watched", "no timer at the deadline"},
    Defect{"core_lost_is_told_twice", "a loss is told twice"},
    Defect{"core_remaining_never_ends", "a handle says held after its deadline"},
    Defect{"core_failed_release_is_dropped", "a release that failed is not tried again"},
    Defect{"core_dropped_handle_is_forgotten", "a handle's destructor gives nothing back"},
};

}  // namespace dlock::simulation
