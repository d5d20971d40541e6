// SPDX-License-Identifier: Apache-2.0
//
// One acquire under a leased gate. Pure: (state, event, now) -> step; leased_acquisition.* executes
// the steps. `Program` of docs/models/leased.pml.
//
//   read the gate -> the locks that its state names, in their order:
//     S_ALONE, ENDED: S   S_THEN_T: S, then T   T_ALONE, FINAL: T   T_THEN_S: T, then S
//   each token above the gate's floor; and at most its ceiling, else: raise the ceiling
//   all are granted, and the newest reading counts and names just these -> held
//   the newest reading names other locks first, or a grant was lost -> give all back, read again
#pragma once

#include <cstdint>
#include <optional>

#include "core/fsm/backoff.hpp"
#include "dlock/spi/answers.hpp"
#include "migration/leased/leased_gate.hpp"

namespace dlock::core::migration {

class LeasedAcquireFsm {
 public:
  struct Limits {
    bool once = false;  ///< wait 0: each store is asked once
    TimePoint deadline = kNever;
    Duration connect_timeout{};
    RetryPolicy retry;
  };
  enum class Action { read, lock_source, lock_target, raise, pause, finish };
  struct Step {
    Action what = Action::finish;
    bool gives_back = false;   ///< the granted locks are released first
    TimePoint until = kNever;  ///< the end of a pause
  };
  /// The content of a reading that counts now. Empty: none counts.
  struct View {
    LeasedState state = LeasedState::source;
    std::uint64_t floor = 0;
    std::uint64_t ceiling = 0;
  };
  using MaybeView = std::optional<View>;
  struct Outcome {
    bool granted = false;
    std::uint64_t token = 0;         ///< if granted
    errc error = errc::unavailable;  ///< if not granted
    Failure failure;                 ///< for the user
  };
  /// The present facts of an event.
  struct Facts {
    MaybeView view;
    bool is_half_lost = false;  ///< a grant has ended
    TimePoint now{};
    std::uint64_t random = 0;  ///< uniform
  };

  explicit LeasedAcquireFsm(Limits limits) : limits_(limits), backoff_(limits.retry) {}

  Step begin();
  Step on_read(const Failure& failure, const Facts& facts);
  Step on_locked(bool in_source, const Outcome& outcome, const Facts& facts);
  Step on_raised(const Failure& failure, const Facts& facts);
  Step on_woken(const Facts& facts);

  /// Whether the lock that is waited for would be of no use under that view.
  bool is_in_vain(const View& view) const noexcept;

  /// True: report error() to the caller now. The operation under way ends with the next event.
  bool on_cancel() { return give_up(errc::cancelled); }
  bool on_closed() { return give_up(errc::closed); }
  /// Also returns false where a store's own acquire reports the deadline.
  bool on_deadline();

  /// After lock_source and lock_target: the grant must be above it.
  std::uint64_t min_token() const noexcept { return floor_; }
  /// At raise: the ceiling must be this at least.
  std::uint64_t highest() const noexcept;
  bool has_source() const noexcept { return source_token_.has_value(); }
  bool has_target() const noexcept { return target_token_.has_value(); }
  /// After finish: the source was locked first, and its token is shown.
  bool is_source_shown() const noexcept { return is_source_shown_; }
  bool is_waiting_for_lock() const noexcept {
    return state_ == State::source || state_ == State::target;
  }
  bool granted() const noexcept { return granted_; }
  errc error() const noexcept { return *error_; }
  const Failure& failure() const noexcept { return failure_; }

 private:
  enum class State { reading, source, target, raising, pausing, finished };

  Step go(State state, Action what);
  Step next(const Facts& facts);
  Step start_anew(const Facts& facts);
  Step later(const Failure& why, Action what, const Facts& facts);
  Step fail(errc error);
  bool give_up(errc error);
  bool fits(const View& view) const noexcept;

  Limits limits_;
  Backoff backoff_;
  State state_ = State::reading;
  Action after_pause_ = Action::read;
  int starts_ = 0;
  std::uint64_t floor_ = 0;
  std::optional<std::uint64_t> source_token_;
  std::optional<std::uint64_t> target_token_;
  bool is_source_shown_ = true;
  bool granted_ = false;
  std::optional<errc> error_;
  Failure failure_;
  std::optional<TimePoint> unanswered_since_;
};

}  // namespace dlock::core::migration
