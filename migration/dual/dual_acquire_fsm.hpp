// SPDX-License-Identifier: Apache-2.0
//
// One acquire in mode dual. Pure: (state, event, now) -> step; dual_acquisition.* carries the steps
// out. `Client` of docs/models/dual.pml.
//
//   enter -> registered, phase admitted -> phase 0, 1: lock S; phase 2: lock T
//         -> not admitted               -> finish, error
//   lock S (above the floor)      -> granted: phase 0: settle; phase 1: lock T
//   lock T (above S's token, and the floor) -> granted: phase 1: raise S; phase 2: settle
//   raise S (above T's token)     -> done: settle
//   settle (the window says that a token so high may be given out) -> confirm
//   confirm: every grant and the registration still good -> finish, held; else all is given back
//   A grant or the registration lost on the way -> enter; whoever enters gives back what he has
//
// Always S first, in both directions: else holders of one would wait for the other for ever.
#pragma once

#include <cstdint>
#include <optional>

#include "core/fsm/backoff.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::core::migration {

class DualAcquireFsm {
 public:
  struct Limits {
    bool once = false;  ///< wait 0: each store is asked once
    TimePoint deadline = kNever;
    Duration connect_timeout{};
    RetryPolicy retry;
  };
  enum class Action { enter, lock_source, lock_target, raise_source, settle, pause, finish };
  struct Step {
    Action what = Action::finish;
    TimePoint until = kNever;  ///< of pause
  };
  /// What one store's acquire came to.
  struct Outcome {
    bool granted = false;
    std::uint64_t token = 0;         ///< if granted
    errc error = errc::unavailable;  ///< if not granted
    Failure failure;                 ///< for the user
  };
  /// How what has been granted so far stands now.
  enum class Good {
    yes,
    half_lost,       ///< a grant is over
    not_registered,  ///< the registration is
  };

  DualAcquireFsm(int phase, Limits limits)
      : phase_(phase), limits_(limits), backoff_(limits.retry) {}

  Step begin() const;
  /// A clear failure: registered, with this floor. `random`: uniform.
  Step on_entered(const Failure& failure, std::uint64_t floor, TimePoint now, std::uint64_t random);
  Step on_source(const Outcome& outcome, Good good, TimePoint now);
  Step on_target(const Outcome& outcome, Good good, TimePoint now);
  Step on_raised(const RecordAnswer& answer, Good good, TimePoint now, std::uint64_t random);
  Step on_settled(const Failure& failure, Good good, TimePoint now, std::uint64_t random);
  /// A pause is over.
  Step on_woken(TimePoint now);

  /// True: tell the caller now, with error(); what is under way ends with the next event.
  bool on_cancel() { return give_up(errc::cancelled); }
  bool on_closed() { return give_up(errc::closed); }
  /// False also where a store's own acquire tells of the deadline.
  bool on_deadline();

  /// After lock_source and lock_target: what the grant must be above.
  std::uint64_t min_token() const noexcept;
  /// At raise_source and settle: the token that is to be shown: T's; in phase 0 S's.
  std::uint64_t token() const noexcept {
    return target_token_ != 0 ? target_token_ : source_token_;
  }
  int phase() const noexcept { return phase_; }
  bool waits_for_target() const noexcept { return state_ == State::target; }
  bool granted() const noexcept { return granted_; }
  errc error() const noexcept { return *error_; }
  const Failure& failure() const noexcept { return failure_; }

 private:
  enum class State { entering, source, target, raising, settling, pausing, finished };

  Step go(State state, Action what);
  Step first_lock();
  Step start_anew(Good good, TimePoint now);
  Step not_locked(const Outcome& outcome);
  Step later(const Failure& why, Action what, TimePoint now, std::uint64_t random);
  Step fail(errc error);
  bool give_up(errc error);

  const int phase_;
  Limits limits_;
  Backoff backoff_;
  State state_ = State::pausing;
  Action after_pause_ = Action::enter;
  std::uint64_t floor_ = 0;
  std::uint64_t source_token_ = 0;
  std::uint64_t target_token_ = 0;
  bool granted_ = false;
  std::optional<errc> error_;
  Failure failure_;
  std::optional<TimePoint> unanswered_since_;
};

}  // namespace dlock::core::migration
