// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/dual_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/spi/error.hpp"
#include "migration/dual/window_watch.hpp"

namespace dlock::core::migration {
namespace {

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

DualReport with(const Window& window, DualReport report) {
  report.window = window;
  return report;
}

}  // namespace

DualReport dual_report(Verdict verdict, std::string text) {
  DualReport report;
  report.verdict = verdict;
  report.text = std::move(text);
  return report;
}

DualReport dual_report(const Failure& failure) {
  const auto code = portable(failure.error);
  const bool away = code == errc::unavailable || code == errc::closed;
  return dual_report(away ? Verdict::unreachable : Verdict::refused,
                     failure.text.empty() ? failure.error.message() : failure.text);
}

DualReport no_window(const Plan& plan) {
  return dual_report(
      Verdict::refused,
      fmt::format(
          "the store '{0}' has no window of plan '{1}': it was not started, or the window is "
          "lost and nobody can lock; run `dlock migrate start {1}`, with `--at LO,HI` if it "
          "was started before",
          plan.window, plan.name));
}

DualReport legacy_not_gone(const Plan& plan, WindowAction action, const Window& window) {
  const auto& alone = action == WindowAction::open_above ? plan.from : plan.to;
  return with(
      window,
      dual_report(Verdict::refused,
                  fmt::format("programs of phase {} do not meet clients that lock '{}' alone "
                              "and are not registered (without this plan in their routes, "
                              "or of another make): end them, then say so with "
                              "--legacy-gone",
                              phase_of(action, window), alone)));
}

DualReport still_watching(const Window& window, Duration watched, Duration quiet) {
  return with(
      window,
      dual_report(Verdict::waiting,
                  fmt::format("no client was seen that is not registered, for {} of "
                              "{}; give --wait more than {}",
                              seconds_text(watched), seconds_text(quiet), seconds_text(quiet))));
}

DualReport waiting_for(WindowAction action, const Window& window, std::vector<Program> left) {
  const bool one = left.size() == 1;
  const bool closes = action == WindowAction::close_above || action == WindowAction::close_below;
  const auto stays = action == WindowAction::close_below ? window.hi : window.lo;
  auto report = dual_report(
      Verdict::waiting,
      fmt::format(
          "waits for {} of {}: {}; restart {} with `phase: {}`. One that has died is over {} "
          "after it was first seen so: give --wait more than that",
          one ? std::string("a program") : fmt::format("{} programs", left.size()),
          closes ? fmt::format("phase {}, which is to be closed", phase_of(action, window))
                 : std::string("a phase that is closed"),
          some_of(left), one ? "it" : "them",
          closes ? std::to_string(stays) : phases_text(window.lo, window.hi),
          seconds_text(WindowWatch::patience(window.lease))));
  report.waits_for = std::move(left);
  return with(window, std::move(report));
}

DualReport waiting_to_withdraw(const Plan& plan, const Window& window, std::vector<Program> left) {
  const bool one = left.size() == 1;
  auto report = dual_report(
      Verdict::waiting,
      fmt::format("before plan '{}' is withdrawn, waits for {} that {} part: {}; end {}, or start "
                  "{} with `store: {}` instead of `migrate`. One that has died is over {} after it "
                  "was first seen so: give --wait more than that",
                  plan.name,
                  one ? std::string("a program") : fmt::format("{} programs", left.size()),
                  one ? "takes" : "take", some_of(left), one ? "it" : "them", one ? "it" : "them",
                  plan.from, seconds_text(WindowWatch::patience(window.lease))));
  report.waits_for = std::move(left);
  return with(window, std::move(report));
}

DualReport strangers_seen(const Window& window, std::vector<Stranger> strangers, Duration quiet) {
  auto report = dual_report(
      Verdict::refused,
      fmt::format("{}: end it, or give it this plan's route; then run it again, and it watches for "
                  "{} that nobody is left",
                  some_of(strangers), seconds_text(quiet)));
  report.strangers = std::move(strangers);
  return with(window, std::move(report));
}

DualReport moved_by_another(const Window& window) {
  return with(window, dual_report(Verdict::done,
                                  fmt::format("another command has moved the window meanwhile: "
                                              "programs of phase {} are admitted",
                                              phases_text(window.lo, window.hi))));
}

bool is_same(const Stranger& one, const Stranger& other) {
  return one.store == other.store && one.lock == other.lock && one.owner.id == other.owner.id;
}

std::string seconds_text(Duration time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

}  // namespace dlock::core::migration
