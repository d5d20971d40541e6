// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "tests/simulation/defects.hpp"

namespace dlock::simulation::planted::memcached {

inline constexpr std::array kDefects = {
    Defect{"memcached_exptime_not_rounded_up", "the item dies up to a second before the lease"},
    Defect{"memcached_blind_release", "a late release takes away whatever is there"},
    Defect{"memcached_blind_renewal", "another's lock is prolonged as ours"},
    Defect{"memcached_deadline_from_reply", "the lease counts from the answer"},
    Defect{"memcached_unanswered_renewal_counts", "a renewal without an answer is a success"},
    Defect{"memcached_renewal_recreates", "a renewal makes a lock that is gone anew"},
    Defect{"memcached_not_stored_is_ours", "a refused add is taken for a late one of ours"},
    Defect{"memcached_token_is_read", "the token is read, not counted up"},
    Defect{"memcached_look_takes_anybodys", "after a lost answer whatever is there is ours"},
    Defect{"memcached_late_add_is_left", "an add that comes in late is not looked for"},
    Defect{"memcached_slow_add_is_forgotten",
           "an add that was answered slowly counts as not done when the next question fails"},
    Defect{"memcached_busy_forgets_a_late_add",
           "who gives up a busy lock leaves an add behind that is still on its way"},
    Defect{"memcached_nobody_polls", "waiters are not looked after"},
};

}  // namespace dlock::simulation::planted::memcached
