// SPDX-License-Identifier: Apache-2.0
#include "core/migration/dual_coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/migration/lock_for.hpp"
#include "core/planted.hpp"

namespace dlock::core::migration {
namespace {

/// Others renew all the time: so often the step is tried before it is looked at anew.
constexpr int kMostTries = 100;

DualReport report_of(Verdict verdict, std::string text) {
  DualReport report;
  report.verdict = verdict;
  report.text = std::move(text);
  return report;
}

DualReport report_of(const Failure& failure) {
  const auto code = portable(failure.error);
  const bool away = code == errc::unavailable || code == errc::closed;
  return report_of(away ? Verdict::unreachable : Verdict::refused,
                   failure.text.empty() ? failure.error.message() : failure.text);
}

std::string seconds_text(Duration time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

/// Some of them by name.
template <class T>
std::string some_of(const std::vector<T>& all) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMost); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : "; ", describe(all[i]));
  }
  if (all.size() > kMost) text += fmt::format("; and {} more", all.size() - kMost);
  return text;
}

}  // namespace

DualCoordinator::DualCoordinator(DualStores stores, Plan plan, Options options)
    : stores_(std::move(stores)),
      plan_(std::move(plan)),
      options_(options),
      note_(stores_.window, plan_.name) {}

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
    if (look.failure.error) co_return report_of(look.failure);
    if (!look.window) {
      // Its programs may believe in their registrations as long as that.
      const auto over = look.answered + WindowWatch::patience(plan_.registration);
      if (over > options_.deadline) {
        co_return report_of(
            Verdict::waiting,
            fmt::format("programs may believe in the lost window for {} still; wait longer than "
                        "that",
                        seconds_text(over - env().now())));
      }
      const bool slept = co_await pause_until(over);
      if (!slept) co_return report_of(Verdict::stopped, "stopped");
      const auto highest = co_await highest_token(stores_, plan_);
      if (!highest.value) co_return report_of(highest.failure);
      floor = *highest.value;
    }
  }
  DualLedger ledger(stores_);
  const auto failure = co_await ledger.publish(plan_, at, floor);
  if (failure.error) co_return report_of(failure);
  auto look = co_await note_.read();
  if (look.failure.error) co_return report_of(look.failure);
  auto report = report_of(Verdict::done, "");
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
  if (look.failure.error) co_return report_of(look.failure);
  if (!look.window) {
    co_return report_of(
        Verdict::refused,
        fmt::format(
            "the store '{0}' has no window of plan '{1}': it was not started, or the window "
            "is lost and nobody can lock; run `dlock migrate start {1}`, with `--at LO,HI` "
            "if it was started before",
            stores_.window->name(), plan_.name));
  }
  see(look);
  const auto decision = decide(goal, *look.window);
  DualReport report;
  if (decision.action == WindowAction::nothing) {
    report = report_of(Verdict::done, decision.why);
    report.window = look.window;
    if (goal == Goal::finish) {
      DualLedger ledger(stores_);
      const auto failure = co_await ledger.certify(plan_);
      if (failure.error) report = report_of(failure);
    }
  } else if (decision.action == WindowAction::refuse) {
    report = report_of(Verdict::refused, decision.why);
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
  for (;;) {
    auto ready = co_await until_ready(action, std::move(look));
    if (ready.report) co_return std::move(*ready.report);
    // Tokens of a phase that is closed are all given by now; those of the open one are in both
    // stores.
    std::uint64_t floor = 0;
    if (!DLOCK_PLANTED("dual_no_floor_at_opening")) {
      const auto highest = co_await highest_token(stores_, plan_);
      if (!highest.value) co_return report_of(highest.failure);
      floor = *highest.value;
    }
    if (stopped_) co_return report_of(Verdict::stopped, "stopped");
    auto written = co_await write(action, std::move(*ready.look), floor);
    if (written) co_return std::move(*written);
    look = co_await note_.read();
    if (look.failure.error) co_return report_of(look.failure);
    if (!look.window) co_return report_of(Verdict::refused, "the window was lost meanwhile");
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
    co_return report_of(Verdict::waiting,
                        "programs of a phase that is closed came back; run it "
                        "again");
  }
  if (written->verdict == Verdict::done && written->changed) {
    DualLedger ledger(stores_);
    const auto failure = co_await ledger.certify(plan_);
    if (failure.error) co_return report_of(failure);
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
                                                           std::uint64_t ver) const {
  if (look.failure.error) return report_of(look.failure);
  if (!look.window) return report_of(Verdict::refused, "the window was lost meanwhile");
  if (look.window->ver == ver) return std::nullopt;
  auto report = report_of(
      Verdict::done, fmt::format("another command has moved the window meanwhile: phases {} are "
                                 "admitted",
                                 phases_text(look.window->lo, look.window->hi)));
  report.window = look.window;
  return report;
}

asio::awaitable<DualCoordinator::Readiness> DualCoordinator::until_ready(WindowAction action,
                                                                         WindowNote::Look look) {
  Readiness ready;
  const auto ver = look.window->ver;
  const bool watched = needs_legacy_gone(action, *look.window);
  if (watched && !options_.legacy_gone) {
    ready.report = legacy_refusal(action, *look.window);
    co_return ready;
  }
  const auto quiet = options_.quiet.value_or(quiet_period(plan_));
  for (;;) {
    auto left = left_before(action, *look.window);
    if (DLOCK_PLANTED("dual_opened_without_scan")) left.clear();
    if (watched) {
      ready.report = co_await look_for_strangers(action, *look.window);
      if (ready.report) co_return ready;
    }
    const auto now = env().now();
    const bool is_quiet = !watched || now >= *quiet_since_ + quiet;
    if (left.empty() && is_quiet) {
      ready.look = std::move(look);
      co_return ready;
    }
    auto report = left.empty() ? still_watching(now, quiet)
                               : waiting_for(action, std::move(left), *look.window);
    if (now >= options_.deadline) {
      report.window = look.window;
      ready.report = std::move(report);
      co_return ready;
    }
    tell_progress(report);
    const bool slept = co_await pause_until(std::min(options_.deadline, now + options_.poll));
    if (!slept) {
      ready.report = report_of(Verdict::stopped, "stopped");
      co_return ready;
    }
    look = co_await note_.read();
    ready.report = moved_meanwhile(look, ver);
    if (ready.report) co_return ready;
    see(look);
  }
}

DualReport DualCoordinator::legacy_refusal(WindowAction action, const Window& window) const {
  const auto above = action == WindowAction::open_above;
  const auto& alone = above ? plan_.from : plan_.to;
  auto report = report_of(
      Verdict::refused,
      fmt::format("programs of phase {} do not meet clients that lock '{}' alone and are not "
                  "registered (without this plan in their routes, or of another make): end them, "
                  "then say so with --legacy-gone",
                  phase_of(action, window), alone));
  report.window = window;
  return report;
}

DualReport DualCoordinator::still_watching(TimePoint now, Duration quiet) const {
  return report_of(
      Verdict::waiting,
      fmt::format("no client was seen that is not registered, for {} of {}; give --wait "
                  "more than {}",
                  seconds_text(now - *quiet_since_), seconds_text(quiet), seconds_text(quiet)));
}

DualReport DualCoordinator::waiting_for(WindowAction action, std::vector<Program> left,
                                        const Window& window) const {
  const auto count =
      left.size() == 1 ? std::string("a program") : fmt::format("{} programs", left.size());
  const bool opens = is_opening(action) || action == WindowAction::finish;
  const auto stays = action == WindowAction::close_below ? window.hi : window.lo;
  const auto phase = phase_of(action, window);
  auto report = report_of(
      Verdict::waiting,
      fmt::format("waits for {} of {}: {}; restart them with `phase: {}`. One that has died is "
                  "over {} after it was first seen so: give --wait more than that",
                  count,
                  opens ? std::string("a phase that is closed")
                        : fmt::format("phase {}, which is to be closed", phase),
                  some_of(left), opens ? phases_text(window.lo, window.hi) : std::to_string(stays),
                  seconds_text(WindowWatch::patience(window.lease))));
  report.waits_for = std::move(left);
  return report;
}

// Claims are looked at before the registrations that explain them: whoever has one registered
// before.
asio::awaitable<std::optional<DualReport>> DualCoordinator::look_for_strangers(WindowAction action,
                                                                               Window window) {
  std::optional<DualReport> report;
  const auto& store = action == WindowAction::open_above ? stores_.from : stores_.to;
  auto found = co_await strangers_in(store, plan_, KnownPrograms());
  if (found.failure.error) {
    report = report_of(found.failure);
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
  quiet_since_.reset();
  report = report_of(
      Verdict::refused,
      fmt::format("{}: end it, or give it this plan's route; then run it again, and it watches for "
                  "{} that nobody is left",
                  some_of(found.strangers),
                  seconds_text(options_.quiet.value_or(quiet_period(plan_)))));
  report->window = std::move(window);
  report->strangers = std::move(found.strangers);
  co_return report;
}

// For those who come after and know the target alone: the tokens that S gave stay below.
asio::awaitable<std::optional<DualReport>> DualCoordinator::raise_target(std::uint64_t floor) {
  std::optional<DualReport> report;
  for (const auto& name : plan_.names) {
    for (;;) {
      auto request = one_try(*stores_.to, name);
      request.min_token = floor;
      request.plan = plan_.name;
      request.plan_id = plan_.id;
      request.program = coordinator_id(plan_.id);
      auto locked = co_await lock_for(stores_.to, std::move(request));
      if (!locked.error) break;
      if (locked.error != errc::timed_out) {
        locked.failure.error = locked.error;
        report = report_of(locked.failure);
        co_return report;
      }
      // Whoever holds it now got it above the floor, if he takes part.
      const auto deadline = env().now() + stores_.to->request_timeout();
      const auto status = co_await stores_.to->backend().inspect(name, deadline);
      if (status.value && status.value->held && status.value->token.value_or(0) > floor) break;
      if (env().now() >= options_.deadline) {
        report = report_of(Verdict::waiting, fmt::format("waits for the holder of '{}' in '{}'",
                                                         name, stores_.to->name()));
        co_return report;
      }
      const bool slept = co_await pause_until(env().now() + options_.poll);
      if (slept) continue;
      report = report_of(Verdict::stopped, "stopped");
      co_return report;
    }
  }
  co_return report;
}

asio::awaitable<std::optional<DualReport>> DualCoordinator::write(WindowAction action,
                                                                  WindowNote::Look look,
                                                                  std::uint64_t floor) {
  std::optional<DualReport> report;
  const auto ver = look.window->ver;
  const bool scans = !DLOCK_PLANTED("dual_opened_without_scan") &&
                     (is_opening(action) || action == WindowAction::finish);
  for (int i = 0; i < kMostTries; ++i) {
    report = moved_meanwhile(look, ver);
    if (report) co_return report;
    see(look);
    // One that was over may have come back to life.
    if (scans && !outside(*look.window).empty()) co_return report;
    const auto text = action_text(action, *look.window);
    const auto next = stepped(*look.window, action, floor, watch_.over(), env().wall_clock_ms());
    auto written = co_await note_.write(look.text, next);
    if (written.outcome == WindowNote::Written::Outcome::failed) {
      report = report_of(written.failure);
      co_return report;
    }
    bool done = written.outcome == WindowNote::Written::Outcome::done;
    if (written.outcome == WindowNote::Written::Outcome::unknown) {
      look = co_await note_.read();
      // Another command's step to the same window is as good.
      done = look.window && look.window->ver == next.ver && look.window->lo == next.lo &&
             look.window->hi == next.hi && look.window->finished == next.finished;
    } else {
      look = std::move(written.found);
    }
    if (!done) continue;
    report = report_of(Verdict::done, text);
    report->changed = true;
    report->window = next;
    co_return report;
  }
  report = report_of(Verdict::unreachable, "others write the window all the time; run it again");
  co_return report;
}

}  // namespace dlock::core::migration
