// SPDX-License-Identifier: Apache-2.0
//
// LeasedCoordinator: turns the leased gate of a plan, each turn one compare-and-set. It keeps
// nothing that another process needs: when it dies, any other continues. `Coordinator` of
// docs/models/leased.pml.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dlock/spi/signal.hpp"
#include "migration/leased/leased_survey.hpp"

namespace dlock::core::migration {

/// Loop only. Outlives the work that it started.
class LeasedCoordinator : public std::enable_shared_from_this<LeasedCoordinator> {
 public:
  struct Options {
    TimePoint deadline = kNever;  ///< applies to all waits
    /// The operator says that no program without the plan's route is left.
    bool legacy_gone = false;
    bool withdraw = false;  ///< applies to a rollback
    /// Receives what it waits for.
    std::function<void(const std::string&)> on_progress{};
  };

  LeasedCoordinator(LeasedStores stores, Plan plan, Options options);

  /// Publishes the plan. `at`: replaces a lost gate, after a whole lease; `source` or `target`.
  asio::awaitable<LeasedReport> start(std::optional<LeasedState> at);
  /// All turns towards the goal.
  asio::awaitable<LeasedReport> take(Goal goal);
  /// Everything ends soon; what was written stays.
  void stop();

 private:
  using MaybeReport = std::optional<LeasedReport>;
  /// A version of the gate, and the time of the first answer with it.
  struct Seen {
    std::string born;
    std::uint64_t version = 0;
    TimePoint first{};
  };

  MaybeReport wrong(const LeasedNote::Look& look) const;
  void see(const LeasedNote::Look& look);
  asio::awaitable<MaybeReport> may_turn(const Turn& turn, const LeasedNote::Look& look);
  asio::awaitable<MaybeReport> look_for_strangers(const LeasedGate& gate);
  asio::awaitable<MaybeReport> wait_until(TimePoint when, std::string what,
                                          const std::optional<LeasedGate>& gate);
  asio::awaitable<LeasedReport> ended(Goal goal, LeasedGate gate, std::string why);
  asio::awaitable<LeasedReport> restore(LeasedState at);
  Env& env() const { return stores_.gate->env(); }

  const LeasedStores stores_;
  Plan plan_;
  const Options options_;
  LeasedNote note_;
  Seen seen_;
  bool changed_ = false;
  bool stopped_ = false;
  std::shared_ptr<Signal> pause_;
};

}  // namespace dlock::core::migration
