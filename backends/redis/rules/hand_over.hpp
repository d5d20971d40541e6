// SPDX-License-Identifier: Apache-2.0
//
// A release may give the lock to the next in line itself, for a probation of a second, and say so.
// Until when the successor may believe it: a probation after it sent the word of its presence that
// the message names, for the server's began later than that word arrived. A later word says
// nothing, answered or not: the server may have got it after the grant. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "dlock/clock.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::redis {

/// How long a lock that was handed over is kept without a renewal; the scripts know it, too.
inline constexpr std::chrono::milliseconds kProbation{1000};
/// How often a process whose waiters may be handed a lock says that it is there.
inline constexpr std::chrono::milliseconds kBetweenWords = kProbation / 3;
/// How long after the message the lock is renewed: who gives it back sooner spares the renewal.
inline constexpr std::chrono::milliseconds kConfirmAfter{50};
/// A process begins to say that it is there when one of its waiters has at most so many others, or
/// processes, before it: so that the load does not grow with the queue.
inline constexpr std::int64_t kSpeakingRanks = 64;

/// Of the key by which an instance (a UUID) says that it is there. No lock's key has a `%`.
inline constexpr std::string_view kPresencePrefix = "dlock:here%";

/// What a release says to a waiter's process: that the lock may be free, or that it has it.
/// Behind the owner's id: an operator breaks its lock.
inline constexpr std::string_view kBrokenMessage = " broken";

struct WakeMessage {
  struct Grant {
    std::uint64_t token = 0;
    std::uint64_t word = 0;  ///< the last word of the process that the server had by then
    std::chrono::milliseconds kept{0};
  };
  std::string_view owner_id;  ///< of the waiter
  std::optional<Grant> grant;
};

/// `owner-id`, or `owner-id token word kept-ms`. What is neither has no grant.
WakeMessage read_message(std::string_view text);

/// A lock that was handed over, and until when that may be believed.
struct HandedLock {
  std::uint64_t token = 0;
  TimePoint until{};
};

/// `sent`: just before the word that the grant names was sent.
HandedLock handed_lock(const WakeMessage::Grant& grant, TimePoint sent,
                       std::chrono::milliseconds lease);

/// Returns whether the process of such a waiter reports its presence while it waits. Readers do not
/// wait behind it once it is silent.
bool sends_presence(const ClaimRequest& request);

/// Whether a release may hand such a claim the lock. One under a gate must be asked for it.
bool may_be_handed(const ClaimRequest& request);

/// Whether the lock is held without another question. No: the token is too low, or too little of
/// the probation is left for a confirmation.
bool is_believable(const HandedLock& handed, const ClaimRequest& request, TimePoint now);

/// When the last words were sent.
class SentWords {
 public:
  /// The number of a word that is sent now or later; they rise.
  std::uint64_t begin(TimePoint now);
  /// Empty: too long ago, or forgotten.
  std::optional<TimePoint> sent(std::uint64_t word) const;
  /// No word from before counts any more.
  void forget() { forgotten_ = last_; }

 private:
  static constexpr std::size_t kKept = 16;
  std::array<TimePoint, kKept> sent_{};
  std::uint64_t last_ = 0;
  std::uint64_t forgotten_ = 0;  ///< up to it
};

}  // namespace dlock::redis
