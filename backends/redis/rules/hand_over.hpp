// SPDX-License-Identifier: Apache-2.0
//
// Hand-over: a release grants the lock to the next waiter for a probation of one second and sends
// that waiter's process a message. The message names the last presence message that the server had
// received. The grant is valid for one probation from the time when the process sent that presence
// message: the server's probation began after it arrived. Later presence messages prove nothing:
// the server may have received them after the grant. Pure.
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

/// The probation: how long a lock that was handed over is kept without a renewal. The scripts
/// contain the same value.
inline constexpr std::chrono::milliseconds kProbation{1000};
/// The interval between two presence messages of a process whose waiters may be handed a lock.
inline constexpr std::chrono::milliseconds kBetweenWords = kProbation / 3;
/// The time from the message to the confirming renewal. A holder that releases earlier saves the
/// renewal.
inline constexpr std::chrono::milliseconds kConfirmAfter{50};
/// A process sends presence messages if one of its waiters has at most this number of waiters, or
/// processes, before it. So the load does not grow with the queue.
inline constexpr std::int64_t kSpeakingRanks = 64;

/// The prefix of the key by which an instance (a UUID) reports its presence. A `%` never occurs in
/// the key of a lock.
inline constexpr std::string_view kPresencePrefix = "dlock:here%";

/// The text after the owner's id in a message to the holder's process: an operator breaks its lock.
inline constexpr std::string_view kBrokenMessage = " broken";

struct WakeMessage {
  struct Grant {
    std::uint64_t token = 0;
    std::uint64_t word = 0;  ///< number of the last presence message that the server had received
                             ///< from the process
    std::chrono::milliseconds kept{0};
  };
  std::string_view owner_id;  ///< the waiter's, or the holder's
  std::optional<Grant> grant;
};

/// Reads `owner-id` or `owner-id token word kept-ms`. Any other text has no grant.
WakeMessage read_message(std::string_view text);

/// A lock that was handed over, and the end of its validity without a confirmation.
struct HandedLock {
  std::uint64_t token = 0;
  TimePoint until{};
};

/// `sent`: just before the presence message that the grant names was sent.
HandedLock handed_lock(const WakeMessage::Grant& grant, TimePoint sent,
                       std::chrono::milliseconds lease);

/// Returns whether the process of such a waiter reports its presence while it waits. Readers do not
/// wait behind it once it is silent.
bool sends_presence(const ClaimRequest& request);

/// Returns whether a release may hand such a claim the lock. A claim under a gate has to ask for
/// it.
bool may_be_handed(const ClaimRequest& request);

/// Returns whether the lock is held without another request. False: the token is too low, or the
/// rest of the probation is too short for a confirmation.
bool is_believable(const HandedLock& handed, const ClaimRequest& request, TimePoint now);

/// The times when the last presence messages were sent.
class SentWords {
 public:
  /// Returns the number of a presence message that is sent now or later. The numbers rise.
  std::uint64_t begin(TimePoint now);
  /// Empty: too long ago, or forgotten.
  std::optional<TimePoint> sent(std::uint64_t word) const;
  /// Ignores all earlier presence messages from now on.
  void forget() { forgotten_ = last_; }

 private:
  static constexpr std::size_t kKept = 16;
  std::array<TimePoint, kKept> sent_{};
  std::uint64_t last_ = 0;
  std::uint64_t forgotten_ = 0;  ///< up to it
};

}  // namespace dlock::redis
