// SPDX-License-Identifier: Apache-2.0
//
// What a step of mode dual came to, and the sentences that say so to the operator. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "migration/dual/dual_steps.hpp"
#include "migration/dual/dual_survey.hpp"
#include "migration/dual/window.hpp"
#include "migration/step_report.hpp"

namespace dlock::core::migration {

struct DualReport {
  Verdict verdict = Verdict::unreachable;
  std::optional<Window> window;     ///< as it was left; empty: there is none, or not known
  bool changed = false;             ///< the window was moved
  std::string text;                 ///< what was done, or why not: a sentence for the operator
  std::vector<Program> waits_for;   ///< of waiting: registrations outside the window
  std::vector<Stranger> strangers;  ///< of refused and waiting: who was seen
};

DualReport dual_report(Verdict verdict, std::string text);
/// unreachable if it may go away by itself, else refused.
DualReport dual_report(const Failure& failure);
/// There is no window.
DualReport no_window(const Plan& plan);
/// The operator has not said that clients are gone that the opened phase does not meet.
DualReport legacy_not_gone(const Plan& plan, WindowAction action, const Window& window);
/// Nobody was seen, for too short a time.
DualReport still_watching(const Window& window, Duration watched, Duration quiet);
/// `left`: who may believe still in a registration of a phase that is closed, or that the step
/// closes.
DualReport waiting_for(WindowAction action, const Window& window, std::vector<Program> left);
/// `left`: who may believe still in a registration of a plan that is to be withdrawn.
DualReport waiting_to_withdraw(const Plan& plan, const Window& window, std::vector<Program> left);
/// Clients that are not registered hold locks of the plan, or wait for them.
DualReport strangers_seen(const Window& window, std::vector<Stranger> strangers, Duration quiet);
/// Another command was faster.
DualReport moved_by_another(const Window& window);

/// The same claim, seen twice.
bool is_same(const Stranger& one, const Stranger& other);
/// `3.1 s`
std::string seconds_text(Duration time);

}  // namespace dlock::core::migration
