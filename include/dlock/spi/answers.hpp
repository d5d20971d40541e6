// SPDX-License-Identifier: Apache-2.0
//
// The answers of a backend. Three results are kept apart everywhere: `unavailable` is surely not
// done, `unknown` is maybe done, `failed` is surely not done and another try will not help.
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

/// How long the store keeps a claim without further news from this process.
struct Validity {
  /// End of the store's lease, counted from before sending; kNever without a lease. The core
  /// subtracts its drift margin.
  TimePoint until = kNever;
  /// When to extend. kNever: never. Per claim: usually a third of the lease after sending.
  TimePoint renew_at = kNever;
};

/// Part of all answers: the failure, for the user. Clear: no failure.
struct Failure {
  error_code error;  ///< in the backend's own category
  std::string text;  ///< the server's or the system's text; never a secret
};

/// A value, or why it is missing.
template <class T>
struct Result {
  std::optional<T> value;  ///< empty on failure
  Failure failure;
};

enum class ClaimStatus {
  granted,       ///< the claim is granted, with token and validity
  waiting,       ///< the claim is queued in the store: wait(), then claim() again
  busy,          ///< another client holds the lock and the claim left nothing: wait(), then claim()
                 ///< again
  sealed,        ///< a migration's record replaces the lock: no client holds it in this store. The
                 ///< claim may be queued behind the record: release() withdraws it; wait() returns
                 ///< when the record may have changed
  gate_changed,  ///< the gate differs from the claim's, no record exists, and the claim left
                 ///< nothing. The next claim may use the present gate
  unavailable,   ///< surely not done; try again
  unknown,       ///< maybe done; claim() again with the same claim, or release() it
  failed,        ///< surely not done, and another try will not help
};

struct ClaimAnswer {
  ClaimStatus status = ClaimStatus::unavailable;
  std::optional<std::uint64_t> token;
  Validity validity;
  std::string record;  ///< with `sealed`: the record; with `gate_changed`: the gate's present text
  Failure failure;
  /// With `waiting`, if ClaimRequest::max_queue asks for it: the number of waiters before it;
  /// holders do not count. Empty: not known just now.
  std::optional<std::size_t> waiting_before{};
};

enum class ExtendStatus {
  extended,
  gone,         ///< no longer held, for `reason`
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
  gone,         ///< no longer held, for `reason`
  unavailable,  ///< surely not done; try again
  unknown,      ///< maybe done; downgrade() again with the same claim, or release() it
  failed,       ///< surely not done, and another try will not help
};

struct DowngradeAnswer {
  DowngradeStatus status = DowngradeStatus::failed;
  LossReason reason = LossReason::none;
  Failure failure;
};

/// Whether the holder listens for requests to release the lock.
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
  std::uint64_t token = 0;  ///< the asked holder's; 0: not known
  Failure failure;
};

enum class ReleaseStatus {
  released,     ///< the claim is gone from the store, or left nothing there (withdrawal)
  not_holder,   ///< the claim was granted once, and was gone before this release
  refused,      ///< surely not done: the store denies it. Reported to the caller, and tried again
  unavailable,  ///< surely not done; the core tries again until the lease is over
  unknown,      ///< maybe done; the core tries again until the lease is over
};

struct ReleaseAnswer {
  ReleaseStatus status = ReleaseStatus::unavailable;
  Failure failure;
};

}  // namespace dlock::inline v0
