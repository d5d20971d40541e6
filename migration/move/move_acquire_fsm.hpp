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
// The rules about waits are AcquireFsm's: the caller is told at once; what comes later is given
// back; nothing is left behind in either store.
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
    std::string name;  ///< of the lock
    std::string from;
    std::string to;
    std::string plan;
    std::vector<std::string> stores;  ///< all that are configured
  };
  struct Limits {
    bool once = false;  ///< wait 0: each store is asked once
    TimePoint deadline = kNever;
    Duration poll{};  ///< between two looks at the record, at most
    Duration connect_timeout{};
    RetryPolicy retry;
  };

  enum class Action { lock_source, seal_source, lock_target, open_target, recheck, pause, finish };
  struct Step {
    Action what = Action::finish;
    TimePoint until = kNever;  ///< of pause
  };

  /// What one store's acquire came to.
  struct Outcome {
    bool granted = false;
    errc error = errc::unavailable;   ///< if not granted
    Failure failure;                  ///< for the user
    std::string record;               ///< of errc::moving
    std::optional<std::string> gate;  ///< it was refused for that: the present one
  };

  /// `gate`: what this process knows of the plan's gate; never null.
  MoveAcquireFsm(Route route, Limits limits, std::shared_ptr<GateBelief> gate)
      : route_(std::move(route)), limits_(limits), gate_(std::move(gate)), backoff_(limits.retry) {}

  Step begin();
  Step on_source(const Outcome& outcome, TimePoint now, std::uint64_t random);
  /// After seal_source.
  Step on_sealed(const RecordAnswer& answer, TimePoint now, std::uint64_t random);
  Step on_target(const Outcome& outcome, TimePoint now, std::uint64_t random);
  /// After open_target: closed() was compared and taken away, with the record's floor.
  Step on_opened(const RecordAnswer& answer, TimePoint now, std::uint64_t random);
  /// `good`: T's grant can still be believed.
  Step on_recheck(const RecordAnswer& answer, bool good, TimePoint now, std::uint64_t random);
  /// A pause is over.
  Step on_woken(TimePoint now);

  /// While T is waited for: when to look at the record next, and what a look says. True: it is no
  /// longer what sent us to T; end the wait there.
  TimePoint next_look(TimePoint now, std::uint64_t random) const;
  bool on_look(const RecordAnswer& answer);

  /// True: tell the caller now, with error(); what is under way ends with the next event.
  bool on_cancel() { return give_up(errc::cancelled); }
  bool on_closed() { return give_up(errc::closed); }
  /// False also where a store's own acquire tells of the deadline.
  bool on_deadline();

  /// Returns the gate under which the claim in S is made.
  GatePtr claim_gate(std::int64_t wall_clock_ms);
  /// Before seal_source, granted with `token`: the record to write.
  Record sealing(std::uint64_t token, std::int64_t wall_clock_ms);

  const Route& route() const noexcept { return route_; }
  /// After lock_target: what sent us there.
  const Record& record() const noexcept { return record_; }
  /// After open_target: what stands in T.
  const std::string& closed() const noexcept { return closed_; }
  bool waits_for_target() const noexcept { return state_ == State::target; }
  /// After finish.
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
