// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "tests/simulation/defects.hpp"

namespace dlock::simulation::planted::migration {

inline constexpr std::array kDefects = {
    Defect{"move_recheck_skipped", "a grant in the target is held without the re-check"},
    Defect{"move_recheck_from_a_replica", "the re-check is answered by a replica that lags"},
    Defect{"move_closing_is_accepted", "the re-check accepts a lock that is being moved back"},
    Defect{"move_any_generation_is_accepted", "the re-check accepts another flip's record"},
    Defect{"move_rollback_without_locking_target", "a rollback does not drain the target"},
    Defect{"move_no_lease_wait", "a rollback from a target that forgets does not wait a lease"},
    Defect{"move_floor_not_passed", "clients lock the target without the floor"},
    Defect{"move_source_not_raised", "a rollback does not raise the source's tokens"},
    Defect{"move_target_not_raised", "finish does not raise the target's tokens"},
    Defect{"move_target_only_before_finish",
           "clients that know the target alone lock there before it is finished"},
    Defect{"move_seal_without_compare", "the seal is written whoever holds the lock"},
    Defect{"move_seal_beside_the_lock", "the record does not stand in the lock's place"},
    Defect{"move_record_lost", "the source forgets a record"},
    Defect{"move_any_closed_place_is_opened",
           "clients open the target whatever rollback has closed it"},
};

}  // namespace dlock::simulation::planted::migration
