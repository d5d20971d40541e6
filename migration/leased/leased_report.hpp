// SPDX-License-Identifier: Apache-2.0
//
// The result of a command on a plan with a leased gate, and its sentences for the operator; and the
// next step, by the gate alone. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "migration/eligibility.hpp"
#include "migration/goal.hpp"
#include "migration/leased/leased_gate.hpp"
#include "migration/step_report.hpp"
#include "migration/stranger.hpp"

namespace dlock::core::migration {

struct LeasedReport {
  Verdict verdict = Verdict::unreachable;
  std::optional<LeasedGate> gate;   ///< as it was left; empty: there is none, or not known
  bool changed = false;             ///< the gate was turned
  std::string text;                 ///< the change that was made, or why none
  std::vector<Stranger> strangers;  ///< non-participants that were seen
};

LeasedReport leased_report(Verdict verdict, std::string text,
                           const std::optional<LeasedGate>& gate = std::nullopt);
/// `unreachable` if it may pass without help, otherwise `refused`.
LeasedReport leased_report(const Failure& failure);

/// One step towards a goal.
struct Turn {
  enum class What { turn, nothing, refuse };
  What what = What::refuse;
  LeasedState to = LeasedState::source;  ///< the next state, if `turn`
  bool waits = false;                    ///< until no reading of an older version counts
  std::string why;                       ///< the reason, if `nothing` or `refuse`
};
/// `withdraws`: a rollback ends the plan in S_ALONE.
Turn next_turn(Goal goal, const LeasedGate& gate, bool withdraws);

/// `locks are acquired in 'redis', then in 'zk'`
std::string places_of(const LeasedGate& gate);
/// `somebody (pid 4711 on host) holds 'a' in 's' and does not take part`
std::string describe(const Stranger& stranger);
/// `3.1 s`
std::string seconds_text(Duration time);

/// Why locks cannot be moved with a leased gate in `gate`, each with what to change.
std::vector<std::string> leased_objections(const End& from, const End& to, const End& gate);

}  // namespace dlock::core::migration
