// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "tests/simulation/defects.hpp"

namespace dlock::simulation::planted::migration {

/// What a plan with a gate must not leave out: docs/models/gate.pml.
inline constexpr std::array kGateDefects = {
    Defect{"gate_not_checked", "claims in the source do not ask for the gate", "any", 1},
    Defect{"gate_checked_before_the_claim", "the gate is read first, and the claim is made then",
           "any", 20},
    Defect{"gate_no_seal", "a lock is used in the target without a record of its own", "any", 1},
    Defect{"gate_listed_before_the_turn", "those who hold or wait are listed, then it is turned",
           "any", 4},
    Defect{"gate_final_by_state", "the final gate is written whichever turn it replaces", "any",
           1514},
    Defect{"gate_waiters_not_listed", "who waits in the source is not in the list", "any", 120},
    Defect{"gate_listed_without_claims", "what is held in the source is not waited for", "any", 1},
    Defect{"gate_sealed_whatever_it_is", "a seal is written though the gate has changed", "any",
           320},
    Defect{"gate_opened_whatever_it_is", "a record is taken away though the gate is turned", "any",
           33},
    Defect{"gate_floor_missing", "the final gate has no floor", "any", 1},
    Defect{"gate_floor_of_the_turn", "the final gate's floor is from when the gate was turned",
           "any", 22},
    Defect{"gate_closing_not_waited_for", "the final gate is written beside a lock that is CLOSING",
           "any", 3},
    Defect{"gate_left_place_not_passed", "what finished plans have left in the target stands there",
           "any", 66},
    Defect{"gate_floor_not_passed", "clients of the target alone do not pass the floor", "any", 2},
    Defect{"gate_source_only_left", "who knows the source alone is there after the finish", "any",
           3},
    Defect{"move_seal_without_compare", "the seal is written whoever holds the lock", "any", 265},
    Defect{"move_recheck_skipped", "a grant in the target is held without the re-check", "any",
           156},
    Defect{"move_rollback_without_locking_target", "a rollback does not drain the target", "any",
           1},
    Defect{"move_target_only_before_finish",
           "clients that know the target alone lock there before the certificate", "any", 1},
};

}  // namespace dlock::simulation::planted::migration
