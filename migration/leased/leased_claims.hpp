// SPDX-License-Identifier: Apache-2.0
//
// The claims of participants of a plan with a leased gate, in the plan's two stores.
#pragma once

#include "core/store/acquisition.hpp"
#include "migration/leased/gate_reader.hpp"

namespace dlock::core::migration {

/// Returns the request for one store, from that of the route's lock there. The claim has the mark
/// of a participant, a token above the gate's floor, and no diagnostics. In the target it is
/// refused unless the store was started with that plan.
Acquisition::Request part_request(const GateReader& reader, Acquisition::Request request,
                                  bool in_source);

}  // namespace dlock::core::migration
