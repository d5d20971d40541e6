// SPDX-License-Identifier: Apache-2.0
//
// What to do next on the way to a lock. Pure: (state, event, now) -> step; acquisition.* carries
// the steps out.
//
//   begin -> claim -> granted                            -> finish, granted
//                  -> waiting | busy -> wait -> claim
//                  -> unavailable | unknown -> pause -> claim
//                  -> failed                             -> finish, error
//                  -> granted, but refused               -> finish, error; the grant is given back
//   deadline or cancel: at once in wait and pause; while a claim is under way the caller is told
//   at once, the answer is awaited, and whatever it left in the store is withdrawn.
//
//   A deadline that passes says `timed_out`, whatever was answered by then; `unavailable` only if
//   the store was seen to fail and has not answered since.
//
// An acquire is never raced: it decides once, and a grant that comes too late is given back.
#pragma once

#include "core/fsm/backoff.hpp"
#include "dlock/spi/answers.hpp"

namespace dlock::core {

class AcquireFsm {
 public:
  struct Limits {
    bool once = false;            ///< wait 0: one claim, no wait, no second try
    TimePoint deadline = kNever;  ///< of the wait
    /// How long the store may be out of reach on end; a policy `forever` waits it out.
    Duration connect_timeout{};
    /// The longest that one attempt to reach a store may take; empty: connect_timeout. Who will not
    /// wait for a lock does not wait for its store either.
    std::optional<std::chrono::milliseconds> patience = std::nullopt;
    RetryPolicy retry;
  };

  enum class Action { claim, wait, pause, finish };
  struct Step {
    Action what = Action::finish;
    TimePoint until = kNever;  ///< of wait and pause
  };

  explicit AcquireFsm(Limits limits) : limits_(limits), backoff_(limits.retry) {}

  Step begin(TimePoint now);
  /// `usable`: a grant's local deadline lies in the future.
  Step on_answer(const ClaimAnswer& answer, bool usable, TimePoint now, std::uint64_t random);
  /// Instead of on_answer(): granted, and the grant must not be used, for `why`; it is given back.
  Step on_refused_grant(Failure why);
  /// A wait or a pause is over. `trouble` (here and below): what is known to stand between us and
  /// the store at present, clear if nothing is.
  Step on_woken(TimePoint now, const Failure& trouble = {});

  /// The caller gives up, his wait ran out, or the store has been out of reach for too long.
  /// True: tell the caller now, with error(); the claim under way is still to be awaited.
  /// False: end the wait or pause under way, the next step says finish; or it is over already.
  bool on_cancel();
  bool on_deadline(const Failure& trouble = {});
  bool on_out_of_reach(const Failure& why);
  bool on_closed();

  /// The caller has been told, or will be, that he does not get it.
  bool given_up() const noexcept { return error_.has_value(); }
  /// After finish.
  bool granted() const noexcept { return granted_; }
  /// The error to tell, in dlock's own category; its cause is failure().
  errc error() const noexcept { return *error_; }
  const Failure& failure() const noexcept { return failure_; }
  /// Something of ours may be in the store and must be withdrawn.
  bool must_withdraw() const noexcept { return !granted_ && may_exist_; }
  /// When the last request of unknown outcome ended; a copy of it may still arrive after that.
  std::optional<TimePoint> last_unknown() const noexcept { return last_unknown_; }

 private:
  enum class State { claiming, waiting, pausing, finished };

  Step claim(TimePoint now);
  Step fail(errc error);
  Step try_again(const ClaimAnswer& answer, TimePoint now, std::uint64_t random);
  bool give_up(errc error);
  errc out_of_time(const Failure& trouble);

  Limits limits_;
  Backoff backoff_;
  State state_ = State::pausing;
  bool granted_ = false;
  bool may_exist_ = false;
  bool answered_ = false;  ///< the store's last word was that somebody else holds it
  std::optional<errc> error_;
  Failure failure_;
  std::optional<TimePoint> unreachable_since_;
  std::optional<TimePoint> last_unknown_;
  TimePoint sent_{};
};

}  // namespace dlock::core
