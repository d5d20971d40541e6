// SPDX-License-Identifier: Apache-2.0
//
// What must hold of every run of a fleet in mode move.
#pragma once

#include <map>
#include <set>
#include <string>

#include "testkit/checkers/history.hpp"
#include "tests/simulation/recorder.hpp"

namespace dlock::simulation::migration {

/// One holder at most, tokens that rise, losses that are told. `stores`: where each grant is;
/// `forgotten`: the owners whose lock the store "t" has forgotten. Two of its own may be there then
/// at once, and never one there and one elsewhere.
checkers::Violations judge(const Recorder& recorder, const std::map<GrantId, std::string>& stores,
                           const std::set<std::string>& forgotten);

}  // namespace dlock::simulation::migration
