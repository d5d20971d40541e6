// SPDX-License-Identifier: Apache-2.0
//
// DualCoordinator: moves the window of a plan in mode dual, each step one compare-and-set on it
// (`Coordinator` of docs/models/dual.pml). Keeps nothing that another process would need: when it
// dies, any other goes on.
//
//   open    every registration outside the window is over, or has left; no stranger for a quiet
//           period where the step needs it; floor := the highest token known; then the window
//   close   at any time; or, if asked, when the last program of that phase has left
//   finish  {2,2}: the target is raised to the floor for the plan's names; window finished; then
//           the certificate
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "migration/dual/dual_ledger.hpp"
#include "migration/dual/dual_report.hpp"
#include "migration/dual/dual_survey.hpp"
#include "migration/dual/window_watch.hpp"
#include "migration/locker.hpp"

namespace dlock::core::migration {

/// Loop only. Outlives the work it started.
class DualCoordinator : public std::enable_shared_from_this<DualCoordinator> {
 public:
  struct Options {
    TimePoint deadline = kNever;  ///< of waiting for registrations, and for a quiet period to pass
    /// The operator says that no client is left that knows the one store alone and is not
    /// registered.
    bool legacy_gone = false;
    /// A closing waits until no program of the phase that it closes is left: so whoever runs the
    /// command once too often shuts nobody out who is still there.
    bool drain = false;
    /// Told what it waits for when that changes, and now and then.
    std::function<void(const std::string&)> on_progress;
    Duration poll = std::chrono::milliseconds(500);  ///< between two looks while it waits
    std::optional<Duration> quiet;                   ///< instead of quiet_period()
  };

  DualCoordinator(DualStores stores, Plan plan, Options options);

  /// Publishes the plan. `at`: restores a window that is lost, after a whole registration lease.
  asio::awaitable<DualReport> start(std::optional<std::pair<int, int>> at);
  /// One step towards the goal; with Goal::finish all of it. `done` without `changed`: it is there.
  asio::awaitable<DualReport> take(Goal goal);
  /// Takes a plan away whose phase 0 alone is admitted, as if it had never been, when nobody is
  /// registered any more. `done` without a window: it is gone.
  asio::awaitable<DualReport> withdraw();
  /// Everything ends soon; what was written stays.
  void stop();

  const Plan& plan() const noexcept { return plan_; }

 private:
  struct Readiness {
    std::optional<DualReport> report;      ///< not ready, for good
    std::optional<WindowNote::Look> look;  ///< ready: the window as it was read last
  };

  asio::awaitable<DualReport> close(WindowAction action, WindowNote::Look look);
  asio::awaitable<DualReport> open(WindowAction action, WindowNote::Look look);
  asio::awaitable<DualReport> finish(WindowNote::Look look);
  asio::awaitable<Readiness> until_ready(WindowAction action, WindowNote::Look look);
  /// A report: they are there to stay, or could not be looked for.
  asio::awaitable<std::optional<DualReport>> look_for_strangers(WindowAction action, Window window);
  asio::awaitable<std::optional<DualReport>> raise_target(std::uint64_t floor);
  /// The step, whatever else changes meanwhile; `ver` must still be what it was. Empty: a
  /// registration lies outside again.
  asio::awaitable<std::optional<DualReport>> write(WindowAction action, WindowNote::Look look,
                                                   std::uint64_t floor);
  asio::awaitable<bool> pause_until(TimePoint when);
  void see(const WindowNote::Look& look);
  /// Of those that are outside the window, who may believe still.
  std::vector<Program> outside(const Window& window) const;
  /// Likewise, of those that the step waits for.
  std::vector<Program> left_before(WindowAction action, const Window& window) const;
  /// What a step waits for now, or is refused for.
  DualReport pending(WindowAction action, const Window& window, std::vector<Program> left,
                     bool is_quiet) const;
  void tell_progress(const DualReport& report);
  /// A report: it is not the window any more for which the step was decided.
  std::optional<DualReport> moved_meanwhile(const WindowNote::Look& look,
                                            const Window& before) const;
  Duration quiet() const;
  Env& env() const;

  const DualStores stores_;
  const Plan plan_;
  const Options options_;
  WindowNote note_;
  WindowWatch watch_;
  KnownPrograms known_;  ///< registered at any time since the work began
  std::optional<TimePoint> quiet_since_;
  std::vector<Stranger> seen_;     ///< at the last look that saw any, since it was quiet
  std::vector<std::string> told_;  ///< whom on_progress was told of last, and when
  TimePoint told_at_ = TimePoint::min();
  bool stopped_ = false;
  std::set<std::shared_ptr<Signal>> pauses_;
};

}  // namespace dlock::core::migration
