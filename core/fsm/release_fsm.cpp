// SPDX-License-Identifier: Apache-2.0
#include "core/fsm/release_fsm.hpp"

#include <algorithm>

namespace dlock::core {
namespace {

// The first repetitions follow quickly (a reset connection is back in milliseconds), later ones
// once a second: a store that is down for hours costs next to nothing.
Duration pause_after(int failures) {
  constexpr std::chrono::milliseconds kFirst{25};
  constexpr std::chrono::milliseconds kLongest{1000};
  return std::min<Duration>(kFirst * (1 << std::min(failures - 1, 10)), kLongest);
}

constexpr int kMostRefusals = 10;

/// A store that was stopped executes what it received meanwhile right after its first answer.
constexpr std::chrono::milliseconds kAfterFirstAnswer{200};

Duration pause_after_refusal(int refusals) {
  return std::min<Duration>(std::chrono::seconds(1 << std::min(refusals - 1, 10)),
                            std::chrono::seconds(30));
}

}  // namespace

ReleaseFsm::Step ReleaseFsm::begin(TimePoint now) {
  return {Action::release, search_, now + limits_.request_timeout};
}

ReleaseFsm::Step ReleaseFsm::on_answer(ReleaseStatus status, TimePoint now) {
  if (status == ReleaseStatus::released || status == ReleaseStatus::not_holder) {
    const bool is_first = !outcome_;
    if (is_first) outcome_ = status;
    failures_ = 0;
    if (!limits_.late_copies_until) return {Action::finish, false, kNever};
    search_ = true;
    if (is_first) {
      return {Action::pause, false,
              now + std::min<Duration>(limits_.search_pause, kAfterFirstAnswer)};
    }
    if (now >= *limits_.late_copies_until) return {Action::finish, false, kNever};
    return {Action::pause, false, std::min(now + limits_.search_pause, *limits_.late_copies_until)};
  }
  // The caller, which may be able to change the refusal, is notified at once, and has some minutes
  // for it.
  if (status == ReleaseStatus::refused) {
    if (!outcome_) outcome_ = status;
    if (now >= limits_.lease_over || ++refusals_ >= kMostRefusals)
      return {Action::finish, false, kNever};
    return {Action::pause, false,
            std::min(now + pause_after_refusal(refusals_), limits_.lease_over)};
  }
  // The store frees a claim whose lease is over without a release.
  if (now >= limits_.lease_over) return {Action::finish, false, kNever};
  ++failures_;
  return {Action::pause, false, std::min(now + pause_after(failures_), limits_.lease_over)};
}

}  // namespace dlock::core
