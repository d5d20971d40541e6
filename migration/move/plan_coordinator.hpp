// SPDX-License-Identifier: Apache-2.0
//
// PlanCoordinator: takes all locks of a plan with a gate towards a goal, those too that nobody has
// listed. Keeps nothing that another process would need: when it dies, any other goes on.
//
//   advance   OPEN -> TURNED; then whoever holds or waits in S from before: queue behind, seal
//   rollback  TURNED -> OPEN, withdrawing: -> ENDED; then each record of S away, as Coordinator
//   does finish    advance; floor = all tokens that S has given; the same TURNED -> FINAL;
//   certificate
//
// After the turn no claim that may hold enters S, and no record is removed there. So a name that is
// not in the list made after it, and one that was moved since, can only be held in T while the gate
// stays as it is: FINAL is compared with the very text of that turn (docs/models/gate.pml).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "migration/gate_note.hpp"
#include "migration/move/coordinator.hpp"
#include "migration/stranger.hpp"

namespace dlock::core::migration {

/// For a list of all locks, however many they are.
inline constexpr auto kListing = std::chrono::minutes(2);

/// What the source shows of a plan's locks: sorted, each once.
struct Governed {
  Failure failure;
  std::vector<std::string> names;   ///< sealed, held or waited for
  std::vector<std::string> sealed;  ///< those with a record
  std::vector<Stranger> strangers;
};

/// Loop only. What is written in the source while it looks may be missing; all that was written
/// before is there.
asio::awaitable<Governed> look_at_source(std::shared_ptr<Store> source, Plan plan);

/// Loop only. Outlives the work it started.
class PlanCoordinator : public std::enable_shared_from_this<PlanCoordinator> {
 public:
  struct Options {
    TimePoint deadline = kNever;  ///< of waiting for holders
    bool target_gone = false;     ///< Coordinator::Options::target_gone
    bool withdraw = false;        ///< of rollback: the plan is over then
    /// Of finish: programs that do not take part will have been stopped.
    bool strangers_gone = false;
  };
  struct Report {
    std::optional<StepReport> refusal;  ///< of the plan as a whole; its name is empty
    std::vector<StepReport> steps;
    std::vector<Stranger> strangers;  ///< of finish
    bool turned = false;              ///< the gate was changed
    bool finished = false;
    bool withdrawn = false;
  };

  PlanCoordinator(std::shared_ptr<Store> source, std::shared_ptr<Store> target, Plan plan,
                  Options options);

  asio::awaitable<Report> drive_all(Goal goal);
  /// Of advance and rollback; of locks that the plan has.
  asio::awaitable<Report> take(Goal goal, std::vector<std::string> names);
  /// What is under way ends soon; what was written stays.
  void stop() {
    for (const auto& one : {by_name_, for_all_}) one->stop();
  }

 private:
  /// Turns the gate for the goal; a report: it cannot be.
  asio::awaitable<std::optional<StepReport>> turn(Goal goal);
  asio::awaitable<std::optional<StepReport>> look();
  /// Why all locks cannot go to the target now.
  asio::awaitable<std::optional<StepReport>> objection();
  /// Of a failure that names its store.
  static StepReport unreachable(const Failure& failure);
  std::shared_ptr<Coordinator> coordinator(bool for_all) const;
  asio::awaitable<Report> drain(Goal goal);
  asio::awaitable<Report> finish();
  asio::awaitable<std::optional<StepReport>> make_final(GateNote::Look turned);
  asio::awaitable<Report> end_withdrawal(Report report);
  std::optional<GateState> next(Goal goal, GateState state) const;
  StepReport refuse(std::string why) const {
    return report_of({}, Verdict::refused, std::move(why));
  }

  const std::shared_ptr<Store> source_;
  const std::shared_ptr<Store> target_;
  const Plan plan_;
  const Options options_;
  GateNote note_;
  GateNote::Look seen_;
  const std::shared_ptr<GateBelief> belief_;
  const std::shared_ptr<Coordinator> by_name_;
  const std::shared_ptr<Coordinator> for_all_;
  bool turned_ = false;
};

}  // namespace dlock::core::migration
