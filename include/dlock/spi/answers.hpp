// SPDX-License-Identifier: Apache-2.0
//
// What a backend answers. Three words are kept apart everywhere: `unavailable` is surely not done,
// `unknown` is maybe done, `failed` is surely not done and will not be by trying again.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "dlock/clock.hpp"
#include "dlock/error.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::inline v0 {

/// Until when the store keeps a claim without further news from us.
struct Validity {
  /// The store's own patience, counted from before sending; kNever without a lease. The core takes
  /// its drift margin off.
  TimePoint until = kNever;
  /// When to extend. kNever: never. Per claim: usually a third of the lease after sending.
  TimePoint renew_at = kNever;
};

/// The part common to all answers: what failed, for the user. Clear: nothing did.
struct Failure {
  error_code error;  ///< in the backend's own category
  std::string text;  ///< the server's or the system's words; never a secret
};

/// A value, or why there is none.
template <class T>
struct Result {
  std::optional<T> value;  ///< empty on failure
  Failure failure;
};

enum class ClaimStatus {
  granted,       ///< ours, with token and validity
  waiting,       ///< we have a place in the store and wait in it: wait(), then claim() again
  busy,          ///< somebody else holds it and nothing of ours is left: wait(), then claim() again
  sealed,        ///< a migration's record stands in the lock's place: nobody holds it here.
                 ///< Something of ours may stand behind the record: release() withdraws it; wait()
                 ///< returns when the record may have changed
  gate_changed,  ///< the gate is not as the claim says, no record stands there, and nothing of ours
                 ///< is left: a claim under what it is now may follow
  unavailable,   ///< surely not done; try again
  unknown,       ///< maybe done; claim() again with the same claim, or release() it
  failed,        ///< surely not done, and trying again will not help
};

struct ClaimAnswer {
  ClaimStatus status = ClaimStatus::unavailable;
  std::optional<std::uint64_t> token;
  Validity validity;
  std::string record;  ///< of `sealed`; of `gate_changed`: the gate's present text
  Failure failure;
  /// Of `waiting`, if ClaimRequest::max_queue asks for it: how many wait before it; whoever holds
  /// the lock does not count. Empty: not known just now.
  std::optional<std::size_t> waiting_before{};
};

enum class ExtendStatus {
  extended,
  gone,         ///< no longer ours, for `reason`
  unavailable,  ///< surely not done
  unknown,      ///< maybe done; the old validity counts
};

struct ExtendAnswer {
  ExtendStatus status = ExtendStatus::unavailable;
  Validity validity;
  LossReason reason = LossReason::none;
  Failure failure;
  std::string broken_by{};  ///< break_words() of the mark, with LossReason::broken; may be empty
};

enum class DowngradeStatus {
  shared,       ///< the claim is one of mode shared, with the same token
  gone,         ///< no longer ours, for `reason`
  unavailable,  ///< surely not done; try again
  unknown,      ///< maybe done; downgrade() again with the same claim, or release() it
  failed,       ///< surely not done, and trying again will not help
};

struct DowngradeAnswer {
  DowngradeStatus status = DowngradeStatus::failed;
  LossReason reason = LossReason::none;
  Failure failure;
};

/// Whether a holder that was asked to give way has somebody who listens for that.
enum class Heard { unknown, no, yes };

/// Arguments of Backend::evict().
struct EvictRequest {
  std::string name;
  std::uint64_t token = 0;  ///< the holder's
  Break mark{};             ///< breaker and reason
  /// False: marks the record. True: deletes it, although the holder may still work under it.
  bool at_once = false;
  /// The caller has marked the record before. A record without a mark is then another holder's.
  bool is_marked = false;
};

struct EvictAnswer {
  Failure failure;
  /// False: the record is marked. The backend deletes nothing until the holder has released it, or
  /// its lease (ZooKeeper: session timeout) is over.
  bool is_free = false;
  /// Time until the marked record is free at the latest. If is_free: time in which the old holder
  /// may still work. Empty: the store has no bound.
  std::optional<std::chrono::milliseconds> within{};
  /// `within` holds only while evict() is called again until then.
  bool needs_caller = false;
};

struct AskAnswer {
  Heard heard = Heard::unknown;
  std::uint64_t token = 0;  ///< of the holder that was asked; 0: not known
  Failure failure;
};

enum class ReleaseStatus {
  released,     ///< it was ours and is gone, or nothing of ours was there (withdrawal)
  not_holder,   ///< it was granted to us once and had gone before this release
  refused,      ///< surely not done: the store does not let us. Told to the caller, tried again
  unavailable,  ///< surely not done; the core tries again until the lease is over
  unknown,      ///< maybe done; likewise
};

struct ReleaseAnswer {
  ReleaseStatus status = ReleaseStatus::unavailable;
  Failure failure;
};

}  // namespace dlock::inline v0
