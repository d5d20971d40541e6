// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: takes one name of a plan towards a goal, step by step, each a compare-and-set on the
// record. Keeps nothing that another process would need: when it dies, any other goes on.
//
//   forward   lock S; seal it with MOVED, floor = S's token; open T's place if it is closed
//   rollback  MOVED -> CLOSING; lock T once (waits for the holder); a lossy T: then wait max_lease,
//             any other: close its place; CLOSING -> OPEN, S raised above T's token
//             target gone: instead of locking T wait max_lease and raise S blindly
//   abort     CLOSING -> MOVED
//
// Each of these writes in S is made while the plan's gate (plan_coordinator.hpp turns it) is as it
// was read: seals under OPEN and TURNED, CLOSING and OPEN under OPEN and ENDED.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/store/store.hpp"
#include "dlock/spi/signal.hpp"
#include "migration/gate.hpp"
#include "migration/locker.hpp"
#include "migration/move/steps.hpp"
#include "migration/move/target_place.hpp"
#include "migration/step_report.hpp"

namespace dlock::core::migration {

/// Loop only. Outlives the work it started.
class Coordinator : public std::enable_shared_from_this<Coordinator> {
 public:
  struct Options {
    TimePoint deadline = kNever;  ///< of waiting for holders
    /// The target is dead for good and was stopped by the operator.
    bool target_gone = false;
    /// What was read of the plan's gate; never null. The coordinator updates it.
    std::shared_ptr<GateBelief> gate;
    /// All locks of the plan go there: not while the gate is OPEN, for another brings them back
    /// then.
    bool is_for_all = false;
  };

  Coordinator(std::shared_ptr<Store> source, std::shared_ptr<Store> target, Plan plan,
              Options options);

  asio::awaitable<StepReport> take(Goal goal, std::string name);
  /// Every take() ends soon; what was written stays.
  void stop() { locker_.stop(); }

 private:
  /// What one step came to: empty `report`: go on with the record as it is now.
  struct Course {
    std::optional<StepReport> report;
    bool changed = false;
  };

  asio::awaitable<RecordAnswer> read(std::string name);
  /// Of a record of another plan: if an earlier one has only left it, what is to be done. All locks
  /// go where whoever asks for this one takes it; by its name it is opened, and moves.
  asio::awaitable<std::optional<Course>> pass_left_one(Goal goal, std::string name,
                                                       std::string record);
  /// A lock, and the gate by which it was decided what is done with it: no write is made under
  /// another, which work on other locks may have learnt of meanwhile.
  struct Task {
    std::string name;
    GatePtr gate;
  };
  asio::awaitable<Course> step(Action action, Task task, std::optional<Record> record);
  /// Writes `to` in the place of the source's record.
  asio::awaitable<RecordAnswer> set_record(Task task, std::string from,
                                           std::optional<std::string> to, std::uint64_t min_token);
  asio::awaitable<Course> seal(Task task);
  asio::awaitable<Course> change(Task task, Record from, MoveState to);
  asio::awaitable<Course> open(Task task, Record closing);
  /// Empty: its place is open.
  asio::awaitable<std::optional<Course>> open_target(std::string name,
                                                     std::optional<Record> record);
  asio::awaitable<Course> close_target(std::string name, Record closing, std::shared_ptr<Hold> hold,
                                       std::uint64_t token);
  asio::awaitable<std::optional<Course>> open_left_place(std::string name,
                                                         std::optional<Record> record,
                                                         std::string text, TargetPlace there);
  asio::awaitable<Course> open_from_closed(Task task, Record closing, std::string text);
  asio::awaitable<Course> open_without_target(Task task, Record closing);
  asio::awaitable<Course> write_open(Task task, Record closing, std::uint64_t above);
  Acquisition::Request request_for(Store& store, const std::string& name) const;
  Acquisition::Request target_request(const std::string& name, const Record& record) const;
  Course after(const RecordAnswer& answer, const Store& store, const std::string& name) const;
  /// Empty: as it was believed to be.
  std::optional<Course> learn_gate(const std::optional<std::string>& text,
                                   const std::string& name) const;
  TimePoint request_deadline(Store& store) const;

  const std::shared_ptr<Store> source_;
  const std::shared_ptr<Store> target_;
  const Plan plan_;
  const Options options_;
  Locker locker_;
};

}  // namespace dlock::core::migration
