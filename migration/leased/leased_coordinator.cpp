// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dlock/spi/error.hpp"

namespace dlock::core::migration {
namespace {

/// Tries while other programs change the gate.
constexpr int kMostTurns = 100;
constexpr std::size_t kMostNamed = 3;

std::string named(const std::vector<Stranger>& strangers) {
  std::string text;
  for (std::size_t i = 0; i < std::min(strangers.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : "; ") + describe(strangers[i]);
  }
  if (strangers.size() > kMostNamed) {
    text += fmt::format("; and {} more", strangers.size() - kMostNamed);
  }
  return text;
}

}  // namespace

LeasedCoordinator::LeasedCoordinator(LeasedStores stores, Plan plan, Options options)
    : stores_(std::move(stores)),
      plan_(std::move(plan)),
      options_(std::move(options)),
      note_(stores_, plan_.name),
      pause_(std::make_shared<Signal>(stores_.gate->env())) {}

void LeasedCoordinator::stop() {
  stopped_ = true;
  pause_->notify();
}

LeasedCoordinator::MaybeReport LeasedCoordinator::wrong(const LeasedNote::Look& look) const {
  if (look.failure.error) return leased_report(look.failure);
  if (!look.gate) {
    return leased_report(
        Verdict::refused,
        fmt::format("the store '{0}' has no gate of plan '{1}': it was not started, or the gate is "
                    "lost; run `dlock migrate start {1}`: it says what to do",
                    stores_.gate->name(), plan_.name));
  }
  if (!look.gate->has_begun()) {
    return leased_report(Verdict::refused, start_broken_off(plan_.name));
  }
  if (look.gate->plan_id == plan_.id) return std::nullopt;
  return leased_report(Verdict::refused,
                       fmt::format("the gate of plan '{}' in the store '{}' is that of another "
                                   "start of the plan",
                                   plan_.name, stores_.gate->name()));
}

void LeasedCoordinator::see(const LeasedNote::Look& look) {
  const auto& gate = *look.gate;
  if (seen_.born == gate.born && seen_.version == gate.version) return;
  seen_ = {gate.born, gate.version, look.answered};
}

asio::awaitable<LeasedCoordinator::MaybeReport> LeasedCoordinator::wait_until(
    TimePoint when, std::string what, const std::optional<LeasedGate>& gate) {
  MaybeReport report;
  const auto left = when - env().now();
  if (stopped_) {
    report = leased_report(Verdict::stopped, "stopped", gate);
  } else if (when > options_.deadline) {
    report = leased_report(Verdict::waiting,
                           fmt::format("{}: set --wait above {}", what, seconds_text(left)), gate);
  } else {
    if (options_.on_progress) {
      options_.on_progress(fmt::format("{}: {} more", what, seconds_text(left)));
    }
    co_await pause_->wait_until(when);
    if (stopped_) report = leased_report(Verdict::stopped, "stopped", gate);
  }
  co_return report;
}

asio::awaitable<LeasedReport> LeasedCoordinator::start(std::optional<LeasedState> at) {
  const auto self = shared_from_this();
  LeasedLedger ledger(stores_);
  if (at) {
    auto restored = co_await restore(*at);
    co_return restored;
  }
  const auto failure = co_await ledger.publish(plan_);
  if (failure.error) co_return leased_report(failure);
  auto look = co_await note_.read();
  if (look.failure.error) co_return leased_report(look.failure);
  auto report = leased_report(Verdict::done, look.gate ? places_of(*look.gate) : "", look.gate);
  report.changed = true;
  co_return report;
}

asio::awaitable<LeasedReport> LeasedCoordinator::restore(LeasedState at) {
  auto look = co_await note_.read();
  if (look.failure.error) co_return leased_report(look.failure);
  if (look.gate && look.gate->has_begun()) {
    co_return leased_report(
        Verdict::refused,
        fmt::format("--at: the gate of plan '{}' is there: {}", plan_.name, places_of(*look.gate)),
        look.gate);
  }
  // A reading of the lost gate may count for that time.
  auto report = co_await wait_until(look.answered + turn_wait(plan_.lease),
                                    "waits until no reading of the lost gate counts", {});
  if (report) co_return std::move(*report);
  const auto ceiling = co_await note_.highest_ceiling();
  if (!ceiling.value) co_return leased_report(ceiling.failure);
  auto highest = *ceiling.value;
  for (const auto& store : {stores_.from, stores_.to}) {
    if (!store->backend().capabilities().can_list) continue;
    const auto listed =
        co_await store->backend().list(plan_.prefix(), env().now() + store->request_timeout());
    if (!listed.value) co_return leased_report(failure_of(*store, listed.failure));
    for (const auto& lock : *listed.value) highest = std::max(highest, lock.token.value_or(0));
  }
  const auto floor = floor_above(highest, env().wall_clock_ms());
  if (!floor) co_return leased_report(Verdict::refused, "no fencing token is left below 2^53");
  auto gate = first_gate(plan_, env());
  gate.state = at;
  gate.version = 1;
  gate.floor = *floor;
  gate.ceiling = with_room_for(gate, *floor + 1).ceiling;
  LeasedLedger ledger(stores_);
  const auto failure = co_await ledger.restore(plan_, gate);
  if (failure.error) co_return leased_report(failure);
  look = co_await note_.read();
  if (look.failure.error) co_return leased_report(look.failure);
  auto done = leased_report(Verdict::done, look.gate ? places_of(*look.gate) : "", look.gate);
  done.changed = true;
  co_return done;
}

asio::awaitable<LeasedReport> LeasedCoordinator::take(Goal goal) {
  const auto self = shared_from_this();
  for (int i = 0; i < kMostTurns; ++i) {
    auto look = co_await note_.read();
    if (auto report = wrong(look)) co_return std::move(*report);
    see(look);
    const auto turn = next_turn(goal, *look.gate, options_.withdraw);
    if (turn.what == Turn::What::refuse) {
      co_return leased_report(Verdict::refused, turn.why, look.gate);
    }
    if (turn.what == Turn::What::nothing) {
      auto report = co_await ended(goal, *look.gate, turn.why);
      co_return report;
    }
    auto report = co_await may_turn(turn, look);
    if (report) {
      report->changed = changed_;
      co_return std::move(*report);
    }
    const auto due = seen_.first + turn_wait(look.gate->lease);
    if (turn.waits && look.sent < due) {
      report = co_await wait_until(due, "waits until every program has read the gate", look.gate);
      if (!report) continue;  // reads it again
      report->changed = changed_;
      co_return std::move(*report);
    }
    const auto next = turned_to(*look.gate, turn.to, env().wall_clock_ms());
    if (!next) {
      co_return leased_report(Verdict::refused, "no fencing token is left below 2^53", look.gate);
    }
    const auto written = co_await note_.write(std::move(look.text), *next);
    if (written.outcome == LeasedNote::Written::Outcome::failed) {
      co_return leased_report(written.failure);
    }
    changed_ = changed_ || written.outcome == LeasedNote::Written::Outcome::done;
  }
  co_return leased_report(Verdict::unreachable,
                          "other programs change the gate all the time; run it again");
}

// Finds the programs that the turn would lock out, before the turn.
asio::awaitable<LeasedCoordinator::MaybeReport> LeasedCoordinator::may_turn(
    const Turn& turn, const LeasedNote::Look& look) {
  MaybeReport report;
  const auto& gate = *look.gate;
  if (is_both(turn.to)) {
    const auto& other = turn.to == LeasedState::source_then_target ? stores_.to : stores_.from;
    const auto failure = co_await other->connected();
    if (failure.error) report = leased_report(failure_of(*other, failure));
    co_return report;
  }
  const bool leaves_source =
      gate.state == LeasedState::source_then_target && turn.to == LeasedState::target;
  if (!leaves_source) co_return report;
  if (!options_.legacy_gone) {
    report = leased_report(
        Verdict::waiting,
        fmt::format("{}. Programs without the plan's route do not meet those that lock '{}' "
                    "alone: when none is left, run `dlock migrate advance {} --legacy-gone`",
                    places_of(gate), gate.to, gate.plan),
        look.gate);
    co_return report;
  }
  report = co_await look_for_strangers(gate);
  co_return report;
}

asio::awaitable<LeasedCoordinator::MaybeReport> LeasedCoordinator::look_for_strangers(
    const LeasedGate& gate) {
  MaybeReport report;
  auto found = co_await strangers_in(stores_.from, plan_);
  if (found.failure.error) {
    report = leased_report(found.failure);
  } else if (!found.strangers.empty()) {
    report = leased_report(
        Verdict::refused,
        fmt::format("{}: end it, or configure it with the plan's route, and run it again",
                    named(found.strangers)),
        gate);
    report->strangers = std::move(found.strangers);
  }
  co_return report;
}

asio::awaitable<LeasedReport> LeasedCoordinator::ended(Goal goal, LeasedGate gate,
                                                       std::string why) {
  Failure failure;
  LeasedLedger ledger(stores_);
  if (gate.state == LeasedState::final_ && goal == Goal::finish) {
    auto home = plan_;
    home.floor = gate.floor;
    failure = co_await ledger.certify(std::move(home));
  } else if (gate.state == LeasedState::ended) {
    failure = co_await ledger.withdraw(plan_);
  }
  if (failure.error) co_return leased_report(failure);
  auto report = leased_report(Verdict::done, std::move(why), gate);
  report.changed = changed_;
  co_return report;
}

}  // namespace dlock::core::migration
