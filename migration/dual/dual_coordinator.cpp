// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/dual_coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/spi/error.hpp"
#include "migration/await_lock.hpp"
#include "migration/policy/plan_claims.hpp"

namespace dlock::core::migration {
namespace {

/// Others renew all the time: so often the step is tried before it is looked at anew.
constexpr int kMostRounds = 100;

}  // namespace

DualCoordinator::DualCoordinator(DualStores stores, Plan plan, Options options)
    : stores_(std::move(stores)),
      plan_(std::move(plan)),
      options_(std::move(options)),
      note_(stores_.window, plan_.name) {}

Duration DualCoordinator::quiet() const { return options_.quiet.value_or(quiet_period(plan_)); }

Env& DualCoordinator::env() const { return stores_.window->env(); }

void DualCoordinator::stop() {
  stopped_ = true;
  for (const auto& pause : std::set(pauses_)) pause->notify();
}

asio::awaitable<bool> DualCoordinator::pause_until(TimePoint when) {
  if (stopped_) co_return false;
  const auto signal = std::make_shared<Signal>(env());
  pauses_.insert(signal);
  co_await signal->wait_until(when);
  pauses_.erase(signal);
  co_return !stopped_;
}

// Whoever was registered at any time since we began is no stranger, though his claim may be left
// in a store when he has gone.
void DualCoordinator::see(const WindowNote::Look& look) {
  if (!look.window) return;
  watch_.see(*look.window, look.sent, look.answered);
  for (auto& program : known_programs(*look.window)) {
    if (std::find(known_.begin(), known_.end(), program) == known_.end()) {
      known_.push_back(std::move(program));
    }
  }
}

asio::awaitable<DualReport> DualCoordinator::start(std::optional<std::pair<int, int>> at) {
  const auto self = shared_from_this();
  std::uint64_t floor = 0;
  if (at) {
    const auto look = co_await note_.read();
    if (look.failure.error) co_return dual_report(look.failure);
    if (!look.window) {
      // Its programs may believe in their registrations as long as that.
      const auto over = look.answered + WindowWatch::patience(plan_.registration);
      if (over > options_.deadline) {
        co_return dual_report(
            Verdict::waiting,
            fmt::format("programs may believe in the lost window for {} still; wait longer than "
                        "that",
                        seconds_text(over - env().now())));
      }
      const bool slept = co_await pause_until(over);
      if (!slept) co_return dual_report(Verdict::stopped, "stopped");
      // Without its text the target refuses who comes for the plan.
      DualLedger texts(stores_);
      const auto published = co_await texts.publish_text(plan_);
      if (!published.value) co_return dual_report(published.failure);
      const auto highest = co_await highest_token(stores_, *published.value);
      if (!highest.value) co_return dual_report(highest.failure);
      const auto above = restored_floor(plan_, *highest.value, env().wall_clock_ms());
      if (!above) {
        co_return dual_report(Verdict::refused,
                              "no token is left below 2^53 to be above those that the lost window "
                              "knew of");
      }
      floor = *above;
    }
  }
  DualLedger ledger(stores_);
  const auto failure = co_await ledger.publish(plan_, at, floor);
  if (failure.error) co_return dual_report(failure);
  auto look = co_await note_.read();
  if (look.failure.error) co_return dual_report(look.failure);
  auto report = dual_report(Verdict::done, "");
  report.changed = true;
  report.window = std::move(look.window);
  if (report.window) {
    report.text = fmt::format("programs of phase {} are admitted",
                              phases_text(report.window->lo, report.window->hi));
  }
  co_return report;
}

asio::awaitable<DualReport> DualCoordinator::take(Goal goal) {
  const auto self = shared_from_this();
  auto look = co_await note_.read();
  if (look.failure.error) co_return dual_report(look.failure);
  if (!look.window) {
    co_return no_window(plan_);
  }
  if (!look.window->is_open()) {
    auto report = dual_report(Verdict::refused, start_broken_off(plan_.name));
    report.window = std::move(look.window);
    co_return report;
  }
  see(look);
  const auto decision = decide(goal, *look.window);
  DualReport report;
  if (decision.action == WindowAction::nothing) {
    report = dual_report(Verdict::done, decision.why);
    report.window = look.window;
    if (goal == Goal::finish) {
      DualLedger ledger(stores_);
      const auto failure = co_await ledger.certify(plan_);
      if (failure.error) report = dual_report(failure);
    }
  } else if (decision.action == WindowAction::refuse) {
    report = dual_report(Verdict::refused, decision.why);
    report.window = look.window;
  } else if (decision.action == WindowAction::finish) {
    report = co_await finish(std::move(look));
  } else if (is_opening(decision.action)) {
    report = co_await open(decision.action, std::move(look));
  } else {
    report = co_await close(decision.action, std::move(look));
  }
  co_return report;
}

// Who was killed has left his registration: it is over with its lease.
asio::awaitable<DualReport> DualCoordinator::withdraw() {
  const auto self = shared_from_this();
  for (;;) {
    auto look = co_await note_.read();
    if (look.failure.error) co_return dual_report(look.failure);
    if (!look.window) co_return no_window(plan_);
    if (!can_withdraw(*look.window)) {
      co_return dual_report(Verdict::refused, still_admits(*look.window));
    }
    see(look);
    auto left = look.window->programs;
    std::erase_if(left, [&](const Program& program) { return watch_.is_over(program); });
    if (left.empty()) break;
    auto report = waiting_to_withdraw(plan_, *look.window, std::move(left));
    const auto now = env().now();
    if (now >= options_.deadline) co_return report;
    tell_progress(report);
    const bool slept = co_await pause_until(std::min(options_.deadline, now + options_.poll));
    if (!slept) co_return dual_report(Verdict::stopped, "stopped");
  }
  DualLedger ledger(stores_);
  const auto failure = co_await ledger.withdraw(plan_, watch_.over());
  if (failure.error) co_return dual_report(failure);
  auto report = dual_report(Verdict::done, "");
  report.changed = true;
  co_return report;
}

asio::awaitable<DualReport> DualCoordinator::close(WindowAction action, WindowNote::Look look) {
  if (options_.drain) {
    auto ready = co_await until_ready(action, std::move(look));
    if (ready.report) co_return std::move(*ready.report);
    look = std::move(*ready.look);
  }
  auto written = co_await write(action, std::move(look), 0);
  co_return std::move(*written);
}

asio::awaitable<DualReport> DualCoordinator::open(WindowAction action, WindowNote::Look look) {
  const auto before = *look.window;
  for (;;) {
    auto ready = co_await until_ready(action, std::move(look));
    if (ready.report) co_return std::move(*ready.report);
    // Tokens of a phase that is closed are all given by now; those of the open one are in both
    // stores.
    const auto highest = co_await highest_token(stores_, plan_);
    if (!highest.value) co_return dual_report(highest.failure);
    if (stopped_) co_return dual_report(Verdict::stopped, "stopped");
    auto written = co_await write(action, std::move(*ready.look), *highest.value);
    if (written) co_return std::move(*written);
    look = co_await note_.read();
    auto moved = moved_meanwhile(look, before);
    if (moved) co_return std::move(*moved);
    see(look);
  }
}

asio::awaitable<DualReport> DualCoordinator::finish(WindowNote::Look look) {
  auto ready = co_await until_ready(WindowAction::finish, std::move(look));
  if (ready.report) co_return std::move(*ready.report);
  const auto floor = ready.look->window->floor;
  auto raised = co_await raise_target(floor);
  if (raised) co_return std::move(*raised);
  auto written = co_await write(WindowAction::finish, std::move(*ready.look), floor);
  if (!written) {
    co_return dual_report(Verdict::waiting,
                          "programs of a phase that is closed came back; run it "
                          "again");
  }
  if (written->verdict == Verdict::done && written->changed) {
    DualLedger ledger(stores_);
    const auto failure = co_await ledger.certify(plan_);
    if (failure.error) co_return dual_report(failure);
  }
  co_return std::move(*written);
}

std::vector<Program> DualCoordinator::outside(const Window& window) const {
  auto all = laggards(window);
  std::erase_if(all, [&](const Program& program) { return watch_.is_over(program); });
  return all;
}

std::vector<Program> DualCoordinator::left_before(WindowAction action, const Window& window) const {
  if (is_opening(action) || action == WindowAction::finish) return outside(window);
  auto all = window.programs;
  std::erase_if(all, [&](const Program& program) {
    return program.phase != phase_of(action, window) || watch_.is_over(program);
  });
  return all;
}

DualReport DualCoordinator::pending(WindowAction action, const Window& window,
                                    std::vector<Program> left, bool is_quiet) const {
  if (!is_quiet && !seen_.empty()) return strangers_seen(window, seen_, quiet());
  if (!left.empty()) return waiting_for(action, window, std::move(left));
  const auto now = env().now();
  return still_watching(window, now - quiet_since_.value_or(now), quiet());
}

void DualCoordinator::tell_progress(const DualReport& report) {
  constexpr auto kNowAndThen = std::chrono::seconds(10);
  if (!options_.on_progress) return;
  std::vector<std::string> now_there;
  for (const auto& program : report.waits_for) now_there.push_back(program.id);
  const auto now = env().now();
  if (now_there == told_ && told_at_ != TimePoint::min() && now < told_at_ + kNowAndThen) return;
  told_ = std::move(now_there);
  told_at_ = now;
  options_.on_progress(report.text);
}

std::optional<DualReport> DualCoordinator::moved_meanwhile(const WindowNote::Look& look,
                                                           const Window& before) const {
  if (look.failure.error) return dual_report(look.failure);
  if (!look.window) return dual_report(Verdict::refused, "the window was lost meanwhile");
  // One that was lost and restored counts from the beginning.
  if (look.window->ver == before.ver && look.window->born == before.born) return std::nullopt;
  return moved_by_another(*look.window);
}

asio::awaitable<DualCoordinator::Readiness> DualCoordinator::until_ready(WindowAction action,
                                                                         WindowNote::Look look) {
  Readiness ready;
  const auto before = *look.window;
  const bool watched = needs_legacy_gone(action, *look.window);
  if (watched && !options_.legacy_gone) {
    ready.report = legacy_not_gone(plan_, action, *look.window);
    co_return ready;
  }
  for (;;) {
    auto left = left_before(action, *look.window);
    if (watched) {
      ready.report = co_await look_for_strangers(action, *look.window);
      if (ready.report) co_return ready;
    }
    const auto now = env().now();
    const bool is_quiet = !watched || (quiet_since_ && now >= *quiet_since_ + quiet());
    if (left.empty() && is_quiet) {
      ready.look = std::move(look);
      co_return ready;
    }
    auto report = pending(action, *look.window, std::move(left), is_quiet);
    if (now >= options_.deadline) {
      ready.report = std::move(report);
      co_return ready;
    }
    tell_progress(report);
    const bool slept = co_await pause_until(std::min(options_.deadline, now + options_.poll));
    if (!slept) {
      ready.report = dual_report(Verdict::stopped, "stopped");
      co_return ready;
    }
    look = co_await note_.read();
    ready.report = moved_meanwhile(look, before);
    if (ready.report) co_return ready;
    see(look);
  }
}

// Claims are looked at before the registrations that explain them: whoever has one registered
// before.
asio::awaitable<std::optional<DualReport>> DualCoordinator::look_for_strangers(WindowAction action,
                                                                               Window window) {
  std::optional<DualReport> report;
  const auto& store = action == WindowAction::open_above ? stores_.from : stores_.to;
  auto found = co_await strangers_in(store, plan_, KnownPrograms());
  if (found.failure.error) {
    report = dual_report(found.failure);
    co_return report;
  }
  const auto look = co_await note_.read();
  if (!look.failure.error) see(look);
  std::erase_if(found.strangers, [&](const Stranger& stranger) {
    return std::any_of(known_.begin(), known_.end(), [&](const std::string& program) {
      return is_claim_of(stranger.owner.id, program);
    });
  });
  if (found.strangers.empty()) {
    if (!quiet_since_) quiet_since_ = env().now();
    co_return report;
  }
  // One look is not enough: a claim that is just being made may not have its owner's name yet.
  quiet_since_.reset();
  const auto before = std::exchange(seen_, std::move(found.strangers));
  const bool stays = std::any_of(seen_.begin(), seen_.end(), [&](const Stranger& stranger) {
    return std::any_of(before.begin(), before.end(),
                       [&](const Stranger& one) { return is_same(one, stranger); });
  });
  if (stays) report = strangers_seen(window, seen_, quiet());
  co_return report;
}

// For those who come after and know the target alone: the tokens that S gave stay below.
asio::awaitable<std::optional<DualReport>> DualCoordinator::raise_target(std::uint64_t floor) {
  std::optional<DualReport> report;
  for (const auto& name : plan_.names) {
    for (;;) {
      auto request = one_try(*stores_.to, name);
      request.min_token = floor;
      request.policy =
          target_claims(*stores_.to, {plan_.name, plan_.id, {}}, coordinator_id(plan_.id));
      auto locked = co_await await_lock(stores_.to, std::move(request));
      if (!locked.error) break;
      if (locked.error != errc::timed_out) {
        locked.failure.error = locked.error;
        report = dual_report(locked.failure);
        co_return report;
      }
      // Whoever holds it now got it above the floor, if he takes part.
      const auto deadline = env().now() + stores_.to->request_timeout();
      const auto status = co_await stores_.to->backend().inspect(name, deadline);
      if (status.value && status.value->held && status.value->token.value_or(0) > floor) break;
      if (env().now() >= options_.deadline) {
        report = dual_report(Verdict::waiting, fmt::format("waits for the holder of '{}' in '{}'",
                                                           name, stores_.to->name()));
        co_return report;
      }
      const bool slept = co_await pause_until(env().now() + options_.poll);
      if (slept) continue;
      report = dual_report(Verdict::stopped, "stopped");
      co_return report;
    }
  }
  co_return report;
}

asio::awaitable<std::optional<DualReport>> DualCoordinator::write(WindowAction action,
                                                                  WindowNote::Look look,
                                                                  std::uint64_t floor) {
  std::optional<DualReport> report;
  const auto before = *look.window;
  const bool scans = is_opening(action) || action == WindowAction::finish;
  for (int i = 0; i < kMostRounds; ++i) {
    report = moved_meanwhile(look, before);
    if (report) co_return report;
    see(look);
    // One that was over may have come back to life.
    if (scans && !outside(*look.window).empty()) co_return report;
    const auto text = action_text(action, *look.window);
    const auto next = stepped(*look.window, action, floor, watch_.over(), env().wall_clock_ms());
    auto written = co_await note_.write(look.text, next);
    if (written.outcome == WindowNote::Written::Outcome::failed) {
      report = dual_report(written.failure);
      co_return report;
    }
    bool done = written.outcome == WindowNote::Written::Outcome::done;
    if (written.outcome == WindowNote::Written::Outcome::unknown) {
      look = co_await note_.read();
      // Another command's step to the same window is as good.
      done = look.window && look.window->ver == next.ver && look.window->born == next.born &&
             look.window->lo == next.lo && look.window->hi == next.hi &&
             look.window->finished == next.finished;
    } else {
      look = std::move(written.found);
    }
    if (!done) continue;
    report = dual_report(Verdict::done, text);
    report->changed = true;
    report->window = next;
    co_return report;
  }
  report = dual_report(Verdict::unreachable, "others write the window all the time; run it again");
  co_return report;
}

}  // namespace dlock::core::migration
