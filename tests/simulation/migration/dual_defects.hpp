// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "tests/simulation/defects.hpp"

namespace dlock::simulation::planted::migration {

inline constexpr std::array kDualDefects = {
    Defect{"dual_phase_one_skipped", "a program of phase 1 locks one store alone", "any", 2},
    Defect{"dual_opened_without_scan", "a phase is opened while programs outside still work", "any",
           23},
    Defect{"dual_legacy_left", "phase 2 is opened while programs are left that know of no plan",
           "any", 8},
    Defect{"dual_registration_not_atomic", "a program registers though the window has moved", "any",
           123},
    Defect{"dual_target_first", "some programs of phase 1 lock the target first", "any", 5},
    Defect{"dual_half_lost_hold_kept", "a hold goes on when one of its two locks is lost", "any",
           512},
    Defect{"dual_hold_outlives_registration", "a hold goes on when the registration is over", "any",
           192},
    Defect{"dual_target_without_min_token", "the target is locked whatever the source's token",
           "any", 3},
    Defect{"dual_source_not_raised", "the source is not raised above the target's token", "any", 5},
    Defect{"dual_no_floor_at_opening", "an opening leaves the floor as it was", "any", 4},
    Defect{"dual_source_token_shown", "a program of phase 1 shows the source's token", "any", 2},
    Defect{"dual_refused_start_is_published", "a start that is refused has opened its window",
           "any", 3},
    Defect{"dual_started_again_after_finish", "a plan begins where a finished one has left", "any",
           18},
    Defect{"dual_finished_plan_starts", "a plan that is finished is started once more", "any", 91},
    Defect{"dual_overlap_allowed", "a plan is started though another one has its locks", "any", 3},
};

}  // namespace dlock::simulation::planted::migration
