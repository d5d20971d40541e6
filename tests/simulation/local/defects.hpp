// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "tests/simulation/defects.hpp"

namespace dlock::simulation::planted::local {

inline constexpr std::array kDefects = {
    Defect{"local_queue_is_not_kept", "who looks is next"},
    Defect{"local_only_our_own_line_counts", "the tickets of other processes are not looked at"},
    Defect{"local_release_keeps_the_file", "a released lock's descriptor stays open"},
};

}  // namespace dlock::simulation::planted::local
