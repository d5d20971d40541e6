// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "tests/simulation/defects.hpp"

namespace dlock::simulation::planted::local {

inline constexpr std::array kDefects = {
    Defect{"local_queue_is_not_kept", "who looks is next"},
    Defect{"local_only_our_own_line_counts", "the tickets of other processes are not looked at"},
    Defect{"local_release_keeps_the_file", "a released lock's descriptor stays open"},
    Defect{"local_seal_without_compare", "a seal is written, whoever has the lock"},
    Defect{"local_newcomer_reads_no_record", "who draws a ticket does not look for a record"},
    Defect{"local_waiter_reads_no_record", "whose turn comes does not look for a record"},
    Defect{"local_old_ticket_is_taken", "a ticket drawn before the tokens were raised is granted"},
    Defect{"local_opening_without_raise",
           "a lock that is opened gives tokens as if it never was away"},
};

}  // namespace dlock::simulation::planted::local
