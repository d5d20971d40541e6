// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_report.hpp"

#include <fmt/format.h>

#include <utility>

#include "dlock/spi/error.hpp"

namespace dlock::core::migration {
namespace {

Turn turn_to(LeasedState state, bool waits = false) {
  Turn turn;
  turn.what = Turn::What::turn;
  turn.to = state;
  turn.waits = waits;
  return turn;
}

Turn nothing(std::string why) {
  Turn turn;
  turn.what = Turn::What::nothing;
  turn.why = std::move(why);
  return turn;
}

Turn refuse(std::string why) {
  Turn turn;
  turn.why = std::move(why);
  return turn;
}

Turn advance(const LeasedGate& gate) {
  switch (gate.state) {
    case LeasedState::source:
      return turn_to(LeasedState::source_then_target);
    case LeasedState::source_then_target:
      return turn_to(LeasedState::target, true);
    case LeasedState::target_then_source:
      return turn_to(LeasedState::target);
    case LeasedState::target:
    case LeasedState::final_:
      return nothing(places_of(gate));
    case LeasedState::ended:
      break;
  }
  return refuse(fmt::format("plan '{}' was withdrawn", gate.plan));
}

Turn rollback(const LeasedGate& gate, bool withdraws) {
  switch (gate.state) {
    case LeasedState::source_then_target:
      return turn_to(LeasedState::source);
    case LeasedState::target:
      return turn_to(LeasedState::target_then_source);
    case LeasedState::target_then_source:
      return turn_to(LeasedState::source, true);
    case LeasedState::source:
      return withdraws ? turn_to(LeasedState::ended) : nothing(places_of(gate));
    case LeasedState::ended:
      return nothing(places_of(gate));
    case LeasedState::final_:
      break;
  }
  return refuse(
      fmt::format("plan '{}' is finished and cannot be rolled back; start another plan "
                  "from '{}' to '{}'",
                  gate.plan, gate.to, gate.from));
}

Turn finish(const LeasedGate& gate) {
  switch (gate.state) {
    case LeasedState::target:
      return turn_to(LeasedState::final_);
    case LeasedState::final_:
      return nothing(places_of(gate));
    default:
      return refuse(fmt::format("{}; run `dlock migrate advance {} --legacy-gone` first",
                                places_of(gate), gate.plan));
  }
}

}  // namespace

LeasedReport leased_report(Verdict verdict, std::string text,
                           const std::optional<LeasedGate>& gate) {
  LeasedReport report;
  report.verdict = verdict;
  report.text = std::move(text);
  report.gate = gate;
  return report;
}

LeasedReport leased_report(const Failure& failure) {
  const auto code = portable(failure.error);
  const bool may_pass = code == errc::unavailable || code == errc::closed;
  return leased_report(may_pass ? Verdict::unreachable : Verdict::refused,
                       failure.text.empty() ? failure.error.message() : failure.text);
}

Turn next_turn(Goal goal, const LeasedGate& gate, bool withdraws) {
  if (goal == Goal::advance) return advance(gate);
  if (goal == Goal::rollback) return rollback(gate, withdraws);
  return finish(gate);
}

std::string places_of(const LeasedGate& gate) {
  switch (gate.state) {
    case LeasedState::source:
    case LeasedState::ended:
      return fmt::format("locks are acquired in '{}'", gate.from);
    case LeasedState::source_then_target:
      return fmt::format("locks are acquired in '{}', then in '{}'", gate.from, gate.to);
    case LeasedState::target_then_source:
      return fmt::format("locks are acquired in '{}', then in '{}'", gate.to, gate.from);
    case LeasedState::target:
    case LeasedState::final_:
      break;
  }
  return fmt::format("locks are acquired in '{}'", gate.to);
}

std::string describe(const Stranger& stranger) {
  const bool is_unknown = stranger.owner.pid == 0 && stranger.owner.id.empty();
  return fmt::format("{} {} '{}' in '{}' and does not take part",
                     is_unknown ? std::string("somebody") : describe(stranger.owner),
                     stranger.waits ? "waits for" : "holds", stranger.lock, stranger.store);
}

std::string seconds_text(Duration time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

std::vector<std::string> leased_objections(const End& from, const End& to, const End& gate) {
  std::vector<std::string> all;
  for (const End* end : {&from, &to}) {
    if (!end->capabilities.can_raise) {
      all.push_back(fmt::format(
          "the store '{}' cannot raise its tokens, so they would not rise across the migration",
          end->name));
    }
    if (end->capabilities.token == TokenStrength::none) {
      all.push_back(fmt::format("the store '{}' has no fencing tokens", end->name));
    }
  }
  if (keeps_records(gate.capabilities)) return all;
  std::string text = fmt::format(
      "the store '{}' may lose the gate, and then no program acquires a lock; write `gate: STORE` "
      "with a store that forgets nothing",
      gate.name);
  for (const auto& loss : gate.capabilities.record_losses) {
    text += fmt::format("; {}: {}", loss.reason, loss.remedy);
  }
  all.push_back(std::move(text));
  return all;
}

}  // namespace dlock::core::migration
