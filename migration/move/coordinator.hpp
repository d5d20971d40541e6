// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: moves one lock of a plan towards a goal. Each step is a compare-and-set on the
// record. It keeps no state, so any other process can continue after its death.
//
//   forward   lock S; seal it with MOVED, floor = S's token; open T's place if it is closed
//   rollback  MOVED -> CLOSING; lock T once (waits for the holder); a lossy T: then wait max_lease,
//             any other: close its place; CLOSING -> OPEN, S raised above T's token
//             target gone: instead of locking T wait max_lease and raise S blindly
//   abort     CLOSING -> MOVED
//
// Each of these writes in S compares the plan's gate, which plan_coordinator.hpp turns. Seals are
// written under OPEN and TURNED, CLOSING and OPEN under OPEN and ENDED.
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
    TimePoint deadline = kNever;  ///< until then it waits for holders
    /// The target is permanently lost, and the operator has stopped it.
    bool target_gone = false;
    /// The plan's gate as it was read, never null. The coordinator updates it.
    std::shared_ptr<GateBelief> gate;
    /// All locks of the plan move. Under an OPEN gate the coordinator stops: another command moves
    /// them back then.
    bool is_for_all = false;
  };

  Coordinator(std::shared_ptr<Store> source, std::shared_ptr<Store> target, Plan plan,
              Options options);

  asio::awaitable<StepReport> take(Goal goal, std::string name);
  /// Ends every take() soon. Completed writes stay.
  void stop() { locker_.stop(); }

 private:
  /// The result of one step. Without a report the next step reads the record again.
  struct Course {
    std::optional<StepReport> report;
    bool changed = false;
  };

  asio::awaitable<RecordAnswer> read(std::string name);
  /// Handles a record that a finished plan has left in the source. A step over all locks passes it:
  /// the next client that acquires the lock removes it. A step by name removes it. Returns nullopt
  /// for any other record.
  asio::awaitable<std::optional<Course>> pass_left_one(Goal goal, std::string name,
                                                       std::string record);
  /// A lock, and the gate under which its step was decided. All writes of the step compare this
  /// gate, even if options_.gate has changed since.
  struct Task {
    std::string name;
    GatePtr gate;
  };
  asio::awaitable<Course> step(Action action, Task task, std::optional<Record> record);
  /// Replaces the record in the source by `to`.
  asio::awaitable<RecordAnswer> set_record(Task task, std::string from,
                                           std::optional<std::string> to, std::uint64_t min_token);
  asio::awaitable<Course> seal(Task task);
  asio::awaitable<Course> change(Task task, Record from, MoveState to);
  asio::awaitable<Course> open(Task task, Record closing);
  /// Returns nullopt if the lock's place in the target is open.
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
  /// Returns nullopt if the gate has not changed.
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
