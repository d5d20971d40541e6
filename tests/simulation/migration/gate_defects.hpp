// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "tests/simulation/defects.hpp"

namespace dlock::simulation::planted::migration {

/// What a plan with a gate must not leave out: docs/models/gate.pml.
inline constexpr std::array kGateDefects = {
    Defect{"gate_not_checked", "claims in the source do not ask for the gate"},
    Defect{"gate_checked_before_the_claim", "the gate is read first, and the claim is made then"},
    Defect{"gate_no_seal", "a lock is used in the target without a record of its own"},
    Defect{"gate_listed_before_the_turn", "those who hold or wait are listed, then it is turned"},
    Defect{"gate_final_by_state", "the final gate is written whichever turn it replaces"},
    Defect{"gate_waiters_not_listed", "who waits in the source is not in the list"},
    Defect{"gate_listed_without_claims", "what is held in the source is not waited for"},
    Defect{"gate_sealed_whatever_it_is", "a seal is written though the gate has changed"},
    Defect{"gate_opened_whatever_it_is", "a record is taken away though the gate is turned"},
    Defect{"gate_floor_missing", "the final gate has no floor"},
    Defect{"gate_floor_of_the_turn", "the final gate's floor is from when the gate was turned"},
    Defect{"gate_closing_not_waited_for",
           "the final gate is written beside a lock that is CLOSING"},
    Defect{"gate_left_place_not_passed",
           "what finished plans have left in the target stands there"},
    Defect{"gate_floor_not_passed", "clients of the target alone do not pass the floor"},
    Defect{"gate_source_only_left", "who knows the source alone is there after the finish"},
    Defect{"move_seal_without_compare", "the seal is written whoever holds the lock"},
    Defect{"move_recheck_skipped", "a grant in the target is held without the re-check"},
    Defect{"move_rollback_without_locking_target", "a rollback does not drain the target"},
    Defect{"move_target_only_before_finish",
           "clients that know the target alone lock there before the certificate"},
};

}  // namespace dlock::simulation::planted::migration
