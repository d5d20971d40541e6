// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/dual_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "migration/record.hpp"

namespace dlock::core::migration {
namespace {

WindowDecision take(WindowAction action) { return {action, {}}; }

WindowDecision forward(const Window& window) {
  if (window.lo == kLastPhase) {
    return {WindowAction::nothing,
            fmt::format("the locks are in '{}' alone; make it final with `dlock migrate finish {}`",
                        window.to, window.plan)};
  }
  return take(window.hi > window.lo ? WindowAction::close_below : WindowAction::open_above);
}

WindowDecision back(const Window& window) {
  if (window.hi == 0) {
    return {WindowAction::nothing, fmt::format("the locks are in '{}' alone", window.from)};
  }
  return take(window.hi > window.lo ? WindowAction::close_above : WindowAction::open_below);
}

std::chrono::milliseconds lease_of(const End& end) {
  const auto& capabilities = end.capabilities;
  if (capabilities.lease_scope == LeaseScope::none) return std::chrono::milliseconds(0);
  if (capabilities.lease_scope == LeaseScope::session) return capabilities.lease;
  return end.lease.value_or(capabilities.lease);
}

}  // namespace

WindowDecision decide(Goal goal, const Window& window) {
  if (window.finished) {
    if (goal != Goal::rollback) {
      return {WindowAction::nothing, fmt::format("it is finished and at home in '{}'", window.to)};
    }
    return {
        WindowAction::refuse,
        fmt::format("it is finished and at home in '{0}'; going back is a plan of its own, from "
                    "'{0}' to '{1}'",
                    window.to, window.from)};
  }
  if (goal == Goal::advance) return forward(window);
  if (goal == Goal::rollback) return back(window);
  if (window.lo == kLastPhase) return take(WindowAction::finish);
  return {WindowAction::refuse,
          fmt::format("phases {} are admitted still; run `dlock migrate advance {}` until phase 2 "
                      "alone is",
                      phases_text(window.lo, window.hi), window.plan)};
}

bool is_opening(WindowAction action) noexcept {
  return action == WindowAction::open_above || action == WindowAction::open_below;
}

int phase_of(WindowAction action, const Window& window) noexcept {
  switch (action) {
    case WindowAction::open_above:
      return window.hi + 1;
    case WindowAction::open_below:
      return window.lo - 1;
    case WindowAction::close_above:
      return window.hi;
    default:
      return window.lo;
  }
}

bool needs_legacy_gone(WindowAction action, const Window& window) noexcept {
  return is_opening(action) && phase_of(action, window) != 1;
}

Window stepped(const Window& window, WindowAction action, std::uint64_t floor,
               const std::vector<std::string>& over, std::int64_t wall_clock_ms) {
  auto next = window;
  for (const auto& id : over) leave(next, id);
  switch (action) {
    case WindowAction::open_above:
      ++next.hi;
      break;
    case WindowAction::open_below:
      --next.lo;
      break;
    case WindowAction::close_above:
      next.hi = next.lo;
      break;
    case WindowAction::close_below:
      next.lo = next.hi;
      break;
    case WindowAction::finish:
      next.finished = true;
      break;
    case WindowAction::nothing:
    case WindowAction::refuse:
      return next;
  }
  if (is_opening(action)) {
    next.floor = std::max(floor, next.highest_token());
  }
  if (action == WindowAction::finish) {
    next.top = next.highest_token();
    next.programs.clear();
  }
  ++next.ver;
  ++next.seq;
  next.since_ms = std::max<std::int64_t>(wall_clock_ms, 0);
  return next;
}

std::optional<std::uint64_t> restored_floor(const Plan& plan, std::uint64_t highest,
                                            std::int64_t wall_clock_ms) {
  if (plan.patterns.empty()) return highest;
  return blind_floor(highest, wall_clock_ms);
}

Duration quiet_period(const Plan& plan) {
  return std::max<Duration>(plan.max_lease * 2, std::chrono::seconds(1));
}

bool can_withdraw(const Window& window) noexcept { return !window.finished && window.hi == 0; }

std::string still_admits(const Window& window) {
  return fmt::format(
      "plan '{0}' admits phases {1}; run `dlock migrate rollback {0}` until phase 0 alone is",
      window.plan, phases_text(window.lo, window.hi));
}

std::string phases_text(int lo, int hi) {
  return lo == hi ? fmt::format("{}", lo) : fmt::format("{} and {}", lo, hi);
}

std::string action_text(WindowAction action, const Window& window) {
  const auto phase = phase_of(action, window);
  if (is_opening(action)) {
    return fmt::format("open {0}: programs with `phase: {0}` are admitted", phase);
  }
  switch (action) {
    case WindowAction::close_above:
    case WindowAction::close_below:
      return fmt::format("close {0}: no program with `phase: {0}` starts any more", phase);
    case WindowAction::finish:
      return fmt::format("finish: the locks are at home in '{}'", window.to);
    default:
      return "nothing";
  }
}

std::vector<std::string> dual_objections(const End& from, const End& to, const End& window) {
  std::vector<std::string> all;
  for (const End* end : {&from, &to}) {
    if (!end->capabilities.can_raise) {
      all.push_back(
          fmt::format("the store '{}' cannot raise its tokens: they would go back", end->name));
    }
    if (end->capabilities.token == TokenStrength::none) {
      all.push_back(fmt::format("the store '{}' gives no tokens", end->name));
    }
  }
  if (keeps_records(window.capabilities)) return all;
  std::string text = fmt::format(
      "the store '{}' may lose the window, and nobody could lock any more; write `window: STORE` "
      "beside `plan`, with a store that forgets nothing",
      window.name);
  for (const auto& loss : window.capabilities.record_losses) {
    text += fmt::format("; {}: {}", loss.reason, loss.remedy);
  }
  all.push_back(std::move(text));
  return all;
}

void describe_dual(Plan& plan, const End& from, const End& to,
                   std::optional<std::chrono::milliseconds> max_lease,
                   std::optional<std::chrono::milliseconds> registration) {
  describe_target(plan, to, max_lease);
  plan.mode = MigrateMode::dual;
  plan.max_lease = max_lease.value_or(std::max(lease_of(from), lease_of(to)));
  plan.registration = std::clamp(registration.value_or(kDefaultRegistration), kShortestRegistration,
                                 kLongestRegistration);
}

}  // namespace dlock::core::migration
