// SPDX-License-Identifier: Apache-2.0
//
// DualLedger: the notes of a plan in mode dual. The plan's text is in both ends, and in the
// window's store; the window (window.hpp) beside it. Each write is a compare-and-set and may be
// repeated by anybody. What a lossy source forgets is not missed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "migration/dual/window_note.hpp"
#include "migration/ledger.hpp"

namespace dlock::core::migration {

/// Loop only.
class DualLedger {
 public:
  struct Found {
    Failure failure;
    std::optional<Plan> plan;      ///< empty: it was not started
    std::optional<Window> window;  ///< empty, with a plan that was started: it is lost
    /// False: its start was refused or broken off, and nothing of it is in effect.
    bool started = false;
    bool finished = false;
  };

  explicit DualLedger(DualStores stores) : stores_(std::move(stores)) {}

  /// By the window's store alone.
  asio::awaitable<Found> find(std::string plan);
  /// config_unsafe: why the plan cannot be published as things stand. Writes nothing.
  asio::awaitable<Failure> objection(Plan plan);
  /// Writes the window {0,0}, or `at`, if there is none, closed; then the plan, or what is missing
  /// of it, and into the lists; and then opens the window: before, nothing of it is in effect. A
  /// plan of that name that is there already keeps its id, if it is about the same. config_unsafe:
  /// why not, also for a plan that has lost its window if `at` is empty. With `at`, the caller has
  /// waited a whole registration lease since the window was found missing; the window's floor is at
  /// least `floor`.
  asio::awaitable<Failure> publish(Plan plan, std::optional<std::pair<int, int>> at,
                                   std::uint64_t floor = 0);
  /// Of a plan that has no window: its text in all stores, or what is missing of it, as it is known
  /// already or else as given. config_unsafe: another plan of that name is known.
  asio::awaitable<Result<Plan>> publish_text(Plan plan);
  /// The window is finished: certificate in the target, and out of the lists.
  asio::awaitable<Failure> certify(Plan plan);
  /// The window is {0,0} and nobody is registered but those that are `over`: as if it had never
  /// been. config_unsafe: it is not so.
  asio::awaitable<Failure> withdraw(Plan plan, std::vector<std::string> over = {});

  const DualStores& stores() const noexcept { return stores_; }

 private:
  asio::awaitable<Failure> publish_window(Plan& plan, std::optional<std::pair<int, int>> at,
                                          std::uint64_t floor);
  asio::awaitable<Failure> write_text(Plan plan);
  asio::awaitable<Failure> open_window(Plan plan);
  /// The window of a start that was refused. Best effort: it is closed.
  asio::awaitable<void> discard_window(Plan plan);
  /// The plan as any of the stores knows it; empty, without a failure: none does.
  asio::awaitable<Result<Plan>> known_plan(std::string plan);
  asio::awaitable<Result<Plan>> read_plan(std::shared_ptr<Store> store, std::string plan);
  bool has_third_store() const {
    return stores_.window != stores_.from && stores_.window != stores_.to;
  }

  const DualStores stores_;
};

}  // namespace dlock::core::migration
