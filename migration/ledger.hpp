// SPDX-License-Identifier: Apache-2.0
//
// Ledger: the notes of plans in the two stores (plan.hpp lists them). Each write is a
// compare-and-set, and every process may repeat it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/store.hpp"
#include "migration/plan.hpp"

namespace dlock::core::migration {

/// Returns the failure with the store's name. The answer is neither done nor a conflict.
Failure failure_of(const Store& store, const Failure& failure);
Failure failure_of(const Store& store, const RecordAnswer& answer);

/// Attempts to write a note that other processes keep changing.
inline constexpr int kMostWrites = 20;
Failure out_of_writes(const Store& store);
/// Returns errc::config_unsafe with the text.
Failure unsafe(std::string text);
/// Returns the refusal of a plan whose name another plan has.
Failure name_is_taken(const std::string& plan);
bool same_but_id(Plan one, const Plan& other);
/// Returns the entries of a list of plans. Failure: `note` is not done, or is not such a list.
Result<std::vector<std::string>> entries_of(const Store& store, std::string_view list,
                                            const RecordAnswer& note);
/// Returns the refusal of a plan's text that a newer dlock wrote. Clear: the text is not newer.
Failure newer_text(const Store& store, std::string_view plan, const RecordAnswer& note);

/// Loop only.
class Ledger {
 public:
  struct Found {
    Failure failure;
    std::optional<Plan> plan;  ///< from the plan's text; in effect only if it is `listed`
    /// The source lists the plan as unfinished. `start` writes this entry last, and the plan's end
    /// removes it last. So the start was neither refused nor interrupted.
    bool listed = false;
    /// The target lists the plan, too: it refuses clients that know it alone. False while a plan is
    /// listed: the target has lost its notes, or a withdrawal was interrupted.
    bool listed_in_target = false;
    /// The target has the plan's text. A withdrawal deletes it after the entries of both lists.
    bool known_in_target = false;
    bool finished = false;
  };

  Ledger(std::shared_ptr<Store> from, std::shared_ptr<Store> to)
      : from_(std::move(from)), to_(std::move(to)) {}

  /// Reads the plan's notes in the source, and with `ask_target` those in the target.
  asio::awaitable<Found> find(std::string plan, bool ask_target);
  /// Returns config_unsafe with the reason for which the plan cannot be published now. Only reads.
  asio::awaitable<Failure> objection(Plan plan);
  /// Writes the notes of the plan that are missing in both stores. An equal plan that is already
  /// published keeps its id. The lists are written last, the source's at the end: they put the plan
  /// into effect. Returns config_unsafe with the reason if the plan is refused; it is not in
  /// effect.
  asio::awaitable<Failure> publish(Plan plan);
  /// Writes the certificate into the target and removes the plan from the lists of unfinished
  /// plans. The gate is FINAL, and `plan` has its floor.
  asio::awaitable<Failure> certify(Plan plan);
  /// Removes the plan from both stores. All locks are OPEN, and the gate is ENDED.
  asio::awaitable<Failure> withdraw(Plan plan);

  /// Returns whether one of the stores lists the plan as unfinished.
  asio::awaitable<Result<bool>> is_listed_anywhere(std::string plan);

  /// Reads, overwrites or deletes one note of any store.
  asio::awaitable<RecordAnswer> read(std::shared_ptr<Store> store, std::string key);
  asio::awaitable<Failure> write(std::shared_ptr<Store> store, std::string key, std::string text);
  asio::awaitable<Failure> erase(std::shared_ptr<Store> store, std::string key);

  /// Replaces one note of any store, `from` by `to`.
  /// Returns nullopt if the caller has to read the note and try again.
  asio::awaitable<std::optional<Failure>> set(std::shared_ptr<Store> store, std::string key,
                                              std::optional<std::string> from,
                                              std::optional<std::string> to);

  using Edit = std::function<std::vector<std::string>(std::vector<std::string>)>;
  /// Replaces a list by the result of `edit`. Repeats it if another process was faster.
  asio::awaitable<Failure> edit(std::shared_ptr<Store> store, std::string key, Edit edit);

 private:
  asio::awaitable<Failure> settle_id(Plan& plan);
  /// Writes the gate of a plan in mode move, OPEN, unless the plan has one from an earlier start.
  asio::awaitable<Failure> make_gate(Plan plan);
  asio::awaitable<Failure> erase_text(std::shared_ptr<Store> store, Plan plan);
  /// Returns a refusal if the plan was finished, or if its name is listed for another plan.
  asio::awaitable<Failure> is_new(Plan plan);
  /// Writes the entries that put the plan into effect.
  asio::awaitable<Failure> put_in_effect(Plan plan);
  asio::awaitable<Failure> give_up_start(Plan plan);
  /// Returns whether a plan of that name is finished, in either direction.
  asio::awaitable<Result<bool>> is_finished(std::string plan);
  /// Returns whether a list of the store has the plan, with a complete start or without.
  asio::awaitable<Result<bool>> is_unfinished(std::shared_ptr<Store> store, std::string plan);
  /// Returns whether that list of the store has the plan, with a complete start.
  asio::awaitable<Result<bool>> is_listed(std::shared_ptr<Store> store, std::string list,
                                          std::string plan);
  /// Adds the entry to a list, unless a plan of the store has a name in common with it.
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
