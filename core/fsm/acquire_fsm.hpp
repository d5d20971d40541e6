// SPDX-License-Identifier: Apache-2.0
//
// AcquireFsm: the next step on the way to a lock. Pure: (state, event, now) -> step; acquisition.*
// carries the steps out.
//
//   begin -> claim -> granted                            -> finish, granted
//                  -> waiting | busy -> wait -> claim
//                  -> unavailable | unknown -> pause -> claim
//                  -> failed                             -> finish, error
//                  -> granted, but refused               -> finish, error; the grant is released
//   deadline or cancel: at once in wait and pause. While a claim is under way the caller is
//   notified at once, the answer is awaited, and whatever it left in the store is withdrawn.
//
//   A wait that ends without the lock: the last answer of the store decides, and no failure was
//   seen since. If that answer was `waiting` or `busy`, the error is `timed_out`. Without an
//   answer, or after a failure, it is `unavailable`. A failure seen after the deadline does not
//   count: the process may have been stopped meanwhile. A wait shorter than kFirstAnswer lasts
//   until the first answer, and kFirstAnswer at most.
//
// An acquire is never raced: it decides once, and a grant that arrives too late is released.
#pragma once

#include <string_view>

#include "core/fsm/backoff.hpp"
#include "dlock/options.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::core {

/// Text of errc::unavailable for a wait that ended without an answer and without a known failure.
inline constexpr std::string_view kNoAnswer = "the store did not answer before the wait ended";

/// The known trouble between this process and the store; a clear failure means none.
struct Trouble {
  Failure failure;
  TimePoint since{};  ///< when the failure was seen first
};

class AcquireFsm {
 public:
  struct Limits {
    bool once = false;            ///< wait 0: one claim, no wait, no second try
    TimePoint deadline = kNever;  ///< end of the wait
    /// How long the store may be out of reach on end; a policy `forever` waits it out.
    Duration connect_timeout{};
    /// Longest time of one attempt to reach a store; empty: connect_timeout. A caller that does not
    /// wait for a lock does not wait for its store either.
    std::optional<std::chrono::milliseconds> patience = std::nullopt;
    RetryPolicy retry;
  };

  enum class Action { claim, wait, pause, finish };
  struct Step {
    Action what = Action::finish;
    TimePoint until = kNever;  ///< end of wait and pause
  };

  explicit AcquireFsm(Limits limits) : limits_(limits), backoff_(limits.retry) {}

  Step begin(TimePoint now);
  /// `usable`: a grant's local deadline has not passed.
  Step on_answer(const ClaimAnswer& answer, bool usable, TimePoint now, std::uint64_t random);
  /// Instead of on_answer(): granted, and the grant must not be used, for `why`; it is released.
  Step on_refused_grant(Failure why);
  /// A wait or a pause is over.
  Step on_woken(TimePoint now, const Trouble& trouble = {});

  /// The caller gives up, its wait is over, or the store has been out of reach for too long.
  /// Returns true if the caller must be notified now, with error(); the claim under way is still to
  /// be awaited. Returns false to end the wait or pause under way, the next step is finish; or if
  /// it is over already.
  bool on_cancel();
  bool on_deadline(const Trouble& trouble = {});
  bool on_out_of_reach(const Failure& why);
  bool on_closed();

  /// The caller was notified, or will be, that it does not get the lock.
  bool given_up() const noexcept { return error_.has_value(); }
  /// Returns how long the wait continues past its deadline for the first answer of the store.
  /// TimePoint::min(): it does not.
  TimePoint first_answer_until(const Trouble& trouble) const noexcept;
  /// Returns the error of a wait that ends now.
  errc error_at_deadline(const Trouble& trouble) const noexcept;

  /// After finish.
  bool granted() const noexcept { return granted_; }
  /// Returns the error to report, in dlock's own category; its cause is failure().
  errc error() const noexcept { return *error_; }
  const Failure& failure() const noexcept { return failure_; }
  /// The claim may have left something in the store, which must be withdrawn.
  bool must_withdraw() const noexcept { return !granted_ && may_exist_; }
  /// When the last request of unknown outcome ended; a copy of it may still arrive after that.
  std::optional<TimePoint> last_unknown() const noexcept { return last_unknown_; }

 private:
  enum class State { claiming, waiting, pausing, finished };

  Step claim(TimePoint now);
  Step fail(errc error);
  Step try_again(const ClaimAnswer& answer, TimePoint now, std::uint64_t random);
  bool give_up(errc error);
  errc out_of_time(const Trouble& trouble);

  Limits limits_;
  Backoff backoff_;
  State state_ = State::pausing;
  bool granted_ = false;
  bool may_exist_ = false;
  bool answered_ = false;  ///< the last answer: another client holds the lock or is ahead
  TimePoint begun_{};
  std::optional<errc> error_;
  Failure failure_;
  std::optional<TimePoint> unreachable_since_;
  std::optional<TimePoint> last_unknown_;
  TimePoint sent_{};
};

}  // namespace dlock::core
