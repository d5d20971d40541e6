// SPDX-License-Identifier: Apache-2.0
//
// Ledger: the notes of plans in the two stores (plan.hpp says which). Each write is a
// compare-and-set and may be repeated by anybody.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/store.hpp"
#include "migration/plan.hpp"

namespace dlock::core::migration {

/// With the store's name; of an answer that is neither done nor a conflict.
Failure failure_of(const Store& store, const Failure& failure);
Failure failure_of(const Store& store, const RecordAnswer& answer);

/// Of what both kinds of plans' ledgers write: so often where others write all the time.
inline constexpr int kMostWrites = 20;
Failure out_of_writes(const Store& store);
/// errc::config_unsafe.
Failure unsafe(std::string text);
/// The name is taken by a plan about something else.
Failure name_is_taken(const std::string& plan);
bool same_but_id(Plan one, const Plan& other);

/// Loop only.
class Ledger {
 public:
  struct Found {
    Failure failure;
    std::optional<Plan> plan;  ///< its text; in effect only where the plan is `listed`
    /// Among the unfinished plans of the source, where that is written last and taken out last: its
    /// start was neither refused nor broken off.
    bool listed = false;
    /// Of the target, if that was asked: who knows it alone is kept out. False while a plan is
    /// listed: the target has lost its notes, or a withdrawal was broken off.
    bool listed_in_target = false;
    /// The target has the plan's text, if that was asked. It goes after the plan has left both
    /// lists.
    bool known_in_target = false;
    bool finished = false;
  };

  Ledger(std::shared_ptr<Store> from, std::shared_ptr<Store> to)
      : from_(std::move(from)), to_(std::move(to)) {}

  /// What the source says of the plan, and with `ask_target` the target as well.
  asio::awaitable<Found> find(std::string plan, bool ask_target);
  /// config_unsafe: why the plan cannot be published as things stand. Writes nothing.
  asio::awaitable<Failure> objection(Plan plan);
  /// Publishes the plan in both stores, or what is missing of it. A plan of that name that is there
  /// already keeps its id, if it is about the same. config_unsafe: why not; nothing of it is in
  /// effect then. What takes effect, that it is listed, is written last, in the source at the end.
  asio::awaitable<Failure> publish(Plan plan);
  /// Writes the certificate into the target and removes the plan from the lists of unfinished
  /// plans. In mode move the gate is FINAL, and `plan` has its floor. In mode dual the window is
  /// finished.
  asio::awaitable<Failure> certify(Plan plan);
  /// Removes the plan from both stores. All locks are OPEN, and the gate is ENDED.
  asio::awaitable<Failure> withdraw(Plan plan);

  /// Whether one of the stores has it among its unfinished plans.
  asio::awaitable<Result<bool>> is_listed_anywhere(std::string plan);

  /// One note of one of the stores, or of a third: read; written whatever stands there; taken away.
  asio::awaitable<RecordAnswer> read(std::shared_ptr<Store> store, std::string key);
  asio::awaitable<Failure> write(std::shared_ptr<Store> store, std::string key, std::string text);
  asio::awaitable<Failure> erase(std::shared_ptr<Store> store, std::string key);

  using Edit = std::function<std::vector<std::string>(std::vector<std::string>)>;
  /// A note that is a list: compared and set until it is as `edit` makes it of what stands there.
  asio::awaitable<Failure> edit(std::shared_ptr<Store> store, std::string key, Edit edit);

 private:
  /// Empty: try again.
  asio::awaitable<std::optional<Failure>> set(std::shared_ptr<Store> store, std::string key,
                                              std::optional<std::string> from,
                                              std::optional<std::string> to);
  asio::awaitable<Failure> settle_id(Plan& plan);
  /// Writes the gate of a plan in mode move, OPEN, unless the plan has one from an earlier start.
  asio::awaitable<Failure> make_gate(Plan plan);
  asio::awaitable<Failure> erase_text(std::shared_ptr<Store> store, Plan plan);
  /// Neither finished before, nor listed and about something else.
  asio::awaitable<Failure> is_new(Plan plan);
  /// What is written last.
  asio::awaitable<Failure> put_in_effect(Plan plan);
  asio::awaitable<Failure> give_up_start(Plan plan);
  /// From here to there, or the other way.
  asio::awaitable<Result<bool>> is_finished(std::string plan);
  /// In one of a store's lists, started or about to be.
  asio::awaitable<Result<bool>> is_unfinished(std::shared_ptr<Store> store, std::string plan);
  /// Whether a store's list of unfinished plans has it.
  asio::awaitable<Result<bool>> is_listed(std::shared_ptr<Store> store, std::string list,
                                          std::string plan);
  /// Into a list of unfinished plans, unless one of them has a name in common with it.
  asio::awaitable<Failure> enlist(std::shared_ptr<Store> store, std::string list, std::string entry,
                                  Plan plan);
  asio::awaitable<Failure> overlap(std::shared_ptr<Store> store, std::vector<std::string> plans,
                                   Plan plan);
  asio::awaitable<Failure> overlap_of_lists(std::shared_ptr<Store> store, Plan plan);
  asio::awaitable<Failure> take_out(std::shared_ptr<Store> store, std::string list, Plan plan);
  asio::awaitable<Failure> unlist(Plan plan);
  asio::awaitable<Failure> list_finished(Plan plan);

  const std::shared_ptr<Store> from_;
  const std::shared_ptr<Store> to_;
};

}  // namespace dlock::core::migration
