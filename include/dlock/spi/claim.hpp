// SPDX-License-Identifier: Apache-2.0
//
// A claim: one attempt to get one lock, as a backend sees it.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "dlock/lock_status.hpp"
#include "dlock/mode.hpp"

namespace dlock::inline v0 {

class LockHandle;  // <dlock/lock_handle.hpp>
struct GateCheck;  // <dlock/spi/migration_store.hpp>
using GatePtr = std::shared_ptr<const GateCheck>;

/// Of a claim that takes an exported grant's place (Backend::offer()).
struct Adoption {
  std::string owner_id;     ///< of the claim that was offered
  std::uint64_t token = 0;  ///< that it has
  std::string proof;        ///< as it was offered with
};

/// From its first request until it is released. The same request is repeated until the outcome is
/// known: `owner.id` makes it idempotent.
struct ClaimRequest {
  std::string name;  ///< checked by the core: a valid lock name
  /// shared only where capabilities and descriptor say so. Such a claim is granted beside others of
  /// its mode, and not before an exclusive one that came earlier if the store has an order.
  Mode mode = Mode::exclusive;
  Owner owner;  ///< owner.id is a lower-case UUID (36 characters), unique per claim
  /// How long the store shall keep a dead holder; meaningful with LeaseScope::claim.
  std::chrono::milliseconds lease{0};
  /// Whether the claimant will wait: a store without places need not leave anything otherwise.
  bool queue = true;
  /// The token must be greater than this.
  std::uint64_t min_token = 0;
  /// Null: nobody asks for a gate, and it costs nothing; so it is for a backend without a
  /// MigrationStore. Else the claim enters the store only while the gate is as it says (see
  /// Capabilities::can_gate); a store without gates is not asked.
  GatePtr gate{};
  /// Once it is granted, EventSink::on_contended() is wanted. What that costs is paid by such a
  /// claim alone; a backend without Capabilities::can_tell_contention may leave it unread.
  bool tell_contention = false;
  /// Once it is granted, EventSink::on_asked() is wanted: only with Capabilities::can_ask.
  bool tell_asked = false;
  /// The first answer `waiting` must say how many wait before it; above this it need not be exact.
  /// Only with Capabilities::can_bound_queue.
  std::optional<std::uint32_t> max_queue{};
  /// It waits as if it had come so much earlier: only with Capabilities::can_head_start, and in
  /// exclusive mode.
  std::chrono::milliseconds head_start{0};
  /// So many of a semaphore's permits at once; 0: it is a lock. Only where capabilities and
  /// descriptor say so; its mode is shared then. A semaphore and a lock of one name never meet.
  std::uint32_t permits = 0;
  /// With `permits`: how many the semaphore has. The first claim writes it into the store; one that
  /// says otherwise fails with wrong_limit(). 0: as many as the store says.
  std::uint32_t limit = 0;
  /// Not null: only with Capabilities::can_adopt. The claim is not one more: it takes the place of
  /// the one that was offered, or is none.
  std::shared_ptr<const Adoption> adoption{};
};

/// A claim and whatever its backend keeps about it. Made by Backend::make_claim, kept alive by the
/// core until the last call on it is over. Touched on the loop only.
class Claim {
 public:
  explicit Claim(ClaimRequest request) : number_(++last_number_), request_(std::move(request)) {}
  virtual ~Claim() = default;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  /// Does not change, but for the mode after a downgrade.
  const ClaimRequest& request() const noexcept { return request_; }
  /// Counts the claims of this process: an order that does not depend on where they lie in memory.
  std::uint64_t number() const noexcept { return number_; }
  /// Its holder was told that it lost the lock: what the store still has of it may stay for the
  /// store's lock delay, if there is one. Set by the core before release(), never for a lock that
  /// was given back.
  bool is_lost() const noexcept { return lost_; }
  void mark_lost() noexcept { lost_ = true; }
  /// It is shared from now on. Set by the core when Backend::downgrade() has said so.
  void mark_shared() noexcept { request_.mode = Mode::shared; }
  /// For a command that must keep the lock alive beyond our process, as under flock(1): a
  /// descriptor that holds the granted claim as long as it is open anywhere; -1 where there is no
  /// such thing.
  virtual int inheritable_descriptor() const noexcept { return -1; }
  /// Somebody has asked for that descriptor: other processes may have it open for as long as they
  /// like. Set by the core before release().
  bool is_inherited() const noexcept { return inherited_; }
  void mark_inherited() noexcept { inherited_ = true; }
  /// Somebody else has asked for the lock since it is ours, or before. Set by the core.
  bool is_contended() const noexcept { return contended_; }
  void mark_contended() noexcept { contended_ = true; }

 private:
  inline static std::atomic<std::uint64_t> last_number_{0};
  const std::uint64_t number_;
  ClaimRequest request_;
  bool lost_ = false;
  bool inherited_ = false;
  bool contended_ = false;
};
using ClaimPtr = std::shared_ptr<Claim>;

/// Claim::inheritable_descriptor() of the lock that the handle holds, for who starts the command;
/// -1 also of an empty handle. Valid while the handle is; dlock closes its own in each fork()ed
/// child, so the command is given a duplicate. Any thread, as LockHandle's readers.
int inheritable_descriptor(const LockHandle& handle) noexcept;

}  // namespace dlock::inline v0
