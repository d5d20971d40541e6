// SPDX-License-Identifier: Apache-2.0
//
// The leased gate of a migration, as a store that others can write to returns it; and its changes.
// Input: the text.
#include <algorithm>
#include <chrono>

#include "core/spi/word.hpp"
#include "dlock/sequencer.hpp"
#include "migration/leased/leased_gate.hpp"
#include "migration/record.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace dlock::fuzz {
namespace {

namespace moves = core::migration;
using moves::LeasedState;

constexpr std::int64_t kWallClockMs = 1'763'770'000'000;
constexpr LeasedState kStates[] = {LeasedState::source, LeasedState::source_then_target,
                                   LeasedState::target, LeasedState::target_then_source,
                                   LeasedState::final_, LeasedState::ended};

void check_fields(const moves::LeasedGate& gate) {
  require(core::is_word(gate.from) && core::is_word(gate.to) && core::is_word(gate.plan),
          "names are names");
  require(moves::is_plan_id(gate.plan_id) && moves::is_plan_id(gate.born), "ids are ids");
  require(gate.floor < kTokenEnd && gate.ceiling < kTokenEnd, "floor and ceiling are tokens");
  require(gate.lease >= moves::kShortestGateLease && gate.lease <= moves::kLongestGateLease,
          "the lease is in its bounds");
  require(gate.since_ms >= 0, "the time of a turn is not negative");
  const TimePoint sent{std::chrono::hours(1)};
  const auto counts = moves::counts_until(sent, gate.lease) - sent;
  require(counts > Duration::zero(), "a reading counts for some time");
  require(moves::turn_wait(gate.lease) > counts, "a turn waits longer than a reading counts");
}

void check_text(const moves::LeasedGate& gate) {
  require(moves::parse_leased_gate(moves::to_text(gate)) == gate, "a gate is read back");
}

void check_turns(const moves::LeasedGate& gate) {
  for (const auto state : kStates) {
    const auto next = moves::turned_to(gate, state, kWallClockMs);
    if (!next) continue;
    require(next->state == state && next->version == gate.version + 1, "a turn has a new version");
    require(next->floor >= gate.floor, "a floor never falls");
    const bool leaves_a_store = moves::is_both(gate.state) && !moves::is_both(state) &&
                                moves::is_source_first(gate.state) != moves::is_source_first(state);
    require(!leaves_a_store || next->floor >= gate.ceiling,
            "tokens of the other store are above those of the first");
    check_text(*next);
  }
}

void check_ceiling(const moves::LeasedGate& gate) {
  for (const auto token : {gate.floor, gate.ceiling, std::min(gate.ceiling, kTokenEnd - 2) + 1}) {
    const auto higher = moves::with_room_for(gate, token);
    require(higher.ceiling >= token && higher.ceiling >= gate.ceiling, "the ceiling has room");
    require(higher.version == gate.version && higher.floor == gate.floor,
            "a higher ceiling is no turn");
    check_text(higher);
  }
}

}  // namespace
}  // namespace dlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace moves = dlock::core::migration;
  const auto text = dlock::fuzz::as_text(data, size);
  std::string why;
  const auto gate = moves::parse_leased_gate(text, &why);
  if (!gate) {
    dlock::fuzz::require(!why.empty(), "an error says why");
    return 0;
  }
  dlock::fuzz::require(moves::to_text(*gate) == text, "one gate has one text");
  dlock::fuzz::check_fields(*gate);
  // No program turns a gate so often, and a ceiling is not below its floor.
  if (gate->version >= 999'999'999 || gate->ceiling < gate->floor) return 0;
  dlock::fuzz::check_turns(*gate);
  dlock::fuzz::check_ceiling(*gate);
  return 0;
}
