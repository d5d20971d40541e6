// SPDX-License-Identifier: Apache-2.0
//
// One acquire of a lock that is being moved. Pure: (state, event, now) -> step;
// migrating_acquisition.* carries the steps out.
//
//   lock S -> granted                         -> finish, held in S; under a TURNED gate: seal it
//          -> another gate                    -> lock S under that one; FINAL: lock T
//          -> sealed, MOVED or FINAL          -> note gen and floor; lock T
//          -> sealed, CLOSING                 -> pause, lock S
//   seal S -> done                            -> lock T
//          -> lost, or another gate           -> give back S, lock S
//   lock T -> granted                         -> re-check: read the record, linearizably; under a
//                                               FINAL gate: finish, held in T
//          -> sealed, FINAL, leading to S    -> closed by a rollback or an earlier plan: open it if
//                                               our record is younger, lock T; else pause, lock S
//          -> S's record has another gen meanwhile (read now and then) -> give up T, lock S
//   re-check -> same gen, MOVED or FINAL, and T's grant still good -> finish, held in T
//            -> anything else                 -> give back T, lock S
//            -> no answer                     -> pause, re-check
//
// Waits follow AcquireFsm's rules: the caller is completed immediately, a later grant is released,
// and no claim remains in either store.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/fsm/backoff.hpp"
#include "dlock/spi/migration_store.hpp"
#include "migration/gate.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

class MoveAcquireFsm {
 public:
  struct Route {
    std::string name;  ///< the lock's name
    std::string from;
    std::string to;
    std::string plan;
    std::vector<std::string> stores;  ///< all that are configured
  };
  struct Limits {
    bool once = false;  ///< wait 0: each store is asked once
    TimePoint deadline = kNever;
    Duration poll{};  ///< the longest time between two reads of the record
    Duration connect_timeout{};
    RetryPolicy retry;
  };

  enum class Action { lock_source, seal_source, lock_target, open_target, recheck, pause, finish };
  struct Step {
    Action what = Action::finish;
    TimePoint until = kNever;  ///< the end of a pause
  };

  /// The result of an acquire in one store.
  struct Outcome {
    bool granted = false;
    errc error = errc::unavailable;   ///< if not granted
    Failure failure;                  ///< for messages
    std::string record;               ///< with errc::moving
    std::optional<std::string> gate;  ///< the present gate, if the claim named another
  };

  /// `gate`: the plan's gate as this process knows it, never null.
  MoveAcquireFsm(Route route, Limits limits, std::shared_ptr<GateBelief> gate)
      : route_(std::move(route)), limits_(limits), gate_(std::move(gate)), backoff_(limits.retry) {}

  Step begin();
  Step on_source(const Outcome& outcome, TimePoint now, std::uint64_t random);
  /// Handles the answer to seal_source.
  Step on_sealed(const RecordAnswer& answer, TimePoint now, std::uint64_t random);
  Step on_target(const Outcome& outcome, TimePoint now, std::uint64_t random);
  /// Handles the answer to open_target, which has removed closed() and raised T to the floor.
  Step on_opened(const RecordAnswer& answer, TimePoint now, std::uint64_t random);
  /// Handles the answer to recheck. `good`: T's grant is still valid.
  Step on_recheck(const RecordAnswer& answer, bool good, TimePoint now, std::uint64_t random);
  /// Handles the end of a pause.
  Step on_woken(TimePoint now);

  /// Returns the time of the next read of the record during a wait in T.
  TimePoint next_look(TimePoint now, std::uint64_t random) const;
  /// Returns true if the record has changed, so that the wait in T has to end.
  bool on_look(const RecordAnswer& answer);

  /// Returns true if the caller is completed now, with error(). A claim in progress ends with the
  /// next event.
  bool on_cancel() { return give_up(errc::cancelled); }
  bool on_closed() { return give_up(errc::closed); }
  /// Returns false, too, if a store's own acquire handles the deadline.
  bool on_deadline();

  /// Returns the gate under which the claim in S is made.
  GatePtr claim_gate(std::int64_t wall_clock_ms);
  /// Returns the record for seal_source, after a grant with `token`.
  Record sealing(std::uint64_t token, std::int64_t wall_clock_ms);

  const Route& route() const noexcept { return route_; }
  /// Returns the record that led to lock_target.
  const Record& record() const noexcept { return record_; }
  /// Returns the text in T that open_target removes.
  const std::string& closed() const noexcept { return closed_; }
  bool waits_for_target() const noexcept { return state_ == State::target; }
  // Valid after finish.
  bool held_in_source() const noexcept { return held_ == Held::source; }
  bool held_in_target() const noexcept { return held_ == Held::target; }
  bool granted() const noexcept { return held_ != Held::nowhere; }
  errc error() const noexcept { return *error_; }
  const Failure& failure() const noexcept { return failure_; }

 private:
  enum class State { source, sealing, target, rechecking, pausing, finished };
  enum class Held { nowhere, source, target };

  Step lock_source();
  Step follow(const std::string& text, TimePoint now, std::uint64_t random);
  Step follow_gate(const std::string& text, TimePoint now);
  Step lock_target(const Record& record);
  Step start_anew(TimePoint now);
  Step recheck_later(const Failure& why, TimePoint now, std::uint64_t random);
  Step hold(Held where);
  Step fail(errc error);
  Step fail(errc error, std::string text);
  Step pause(TimePoint until, Action then);
  Failure foreign_record(const Record& record) const;
  /// `late`: the error if the wait ends before the source is asked.
  Step ask_source_later(TimePoint now, std::uint64_t random, errc late = errc::timed_out);
  errc error_at_deadline() const noexcept;
  bool still_moved(const std::optional<std::string>& text) const;
  bool give_up(errc error);
  Duration pace(std::uint64_t random) const;

  Route route_;
  Limits limits_;
  const std::shared_ptr<GateBelief> gate_;
  std::optional<Gate> claimed_under_;  ///< as the claim in S says
  bool asks_target_alone_ = false;     ///< by a FINAL gate
  Backoff backoff_;
  State state_ = State::pausing;
  Action after_pause_ = Action::lock_source;
  errc late_ = errc::timed_out;  ///< the error of a deadline in a pause before lock_source
  Held held_ = Held::nowhere;
  Record record_;
  std::string closed_;
  bool changed_ = false;  ///< the record changed while T was waited for
  std::optional<errc> error_;
  Failure failure_;
  std::optional<TimePoint> unanswered_since_;
};

}  // namespace dlock::core::migration
