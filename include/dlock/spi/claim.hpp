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

/// The offer that a claim adopts: the claim replaces an exported grant (Backend::offer()).
struct Adoption {
  std::string owner_id;     ///< the offered claim's
  std::uint64_t token = 0;  ///< the offered claim's
  std::string proof;        ///< as passed to offer()
};

/// From its first request until it is released. The same request is repeated until the outcome is
/// known: `owner.id` makes it idempotent.
struct ClaimRequest {
  std::string name;  ///< checked by the core: a valid lock name
  /// shared only where capabilities and descriptor allow it. Such a claim is granted together with
  /// others of its mode. A store with a queue does not grant it before an earlier exclusive claim.
  Mode mode = Mode::exclusive;
  Owner owner;  ///< owner.id is a lower-case UUID (36 characters), unique per claim
  /// How long the store shall keep a dead holder; meaningful with LeaseScope::claim.
  std::chrono::milliseconds lease{0};
  /// Whether the claimant will wait: a store without places need not leave anything otherwise.
  bool queue = true;
  /// The token must be greater than this.
  std::uint64_t min_token = 0;
  /// Null: no gate, at no cost; always so for a backend without a MigrationStore. Else the claim
  /// enters the store only while the gate is as stated (Capabilities::can_gate). The core does not
  /// ask a store without gates.
  GatePtr gate{};
  /// The core needs EventSink::on_contended() once it is granted. Only such claims may have the
  /// cost of it. A backend without Capabilities::can_tell_contention may ignore it.
  bool tell_contention = false;
  /// The core needs EventSink::on_asked() once it is granted: only with Capabilities::can_ask.
  bool tell_asked = false;
  /// The first answer `waiting` must have the number of waiters before it; above this number it
  /// need not be exact. Only with Capabilities::can_bound_queue.
  std::optional<std::uint32_t> max_queue{};
  /// The claim is queued as if it had arrived earlier by this time: only with
  /// Capabilities::can_head_start, and in exclusive mode.
  std::chrono::milliseconds head_start{0};
  /// Number of permits of a semaphore to acquire at once; 0: it is a lock. Only where capabilities
  /// and descriptor allow it; the mode is then shared. A semaphore and a lock of one name are
  /// independent.
  std::uint32_t permits = 0;
  /// With `permits`: the semaphore's limit. The first claim writes it into the store; a claim with
  /// another limit fails with wrong_limit(). 0: the limit in the store.
  std::uint32_t limit = 0;
  /// Not null: only with Capabilities::can_adopt. The claim replaces the offered one, or fails.
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
  /// Constant, except for the mode after a downgrade.
  const ClaimRequest& request() const noexcept { return request_; }
  /// Counts the claims of this process: an order that does not depend on their addresses.
  std::uint64_t number() const noexcept { return number_; }
  /// The holder was notified of the loss. The record in the store may stay for the store's lock
  /// delay, if it has one. Set by the core before release(), never for a lock that its holder
  /// released.
  bool is_lost() const noexcept { return lost_; }
  void mark_lost() noexcept { lost_ = true; }
  /// It is shared from now on. Set by the core when Backend::downgrade() has said so.
  void mark_shared() noexcept { request_.mode = Mode::shared; }
  /// For a command that must keep the lock alive beyond this process, as with flock(1). Returns a
  /// descriptor that holds the granted claim while it is open in any process; -1 where the store
  /// has none.
  virtual int inheritable_descriptor() const noexcept { return -1; }
  /// The descriptor was requested: other processes may keep it open without a time limit. Set by
  /// the core before release().
  bool is_inherited() const noexcept { return inherited_; }
  void mark_inherited() noexcept { inherited_ = true; }
  /// Another client has asked for the lock since the grant, or before. Set by the core.
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

/// Returns Claim::inheritable_descriptor() of the lock in the handle, for code that starts the
/// command; -1 also for an empty handle. Lifetime: while the handle lives. dlock closes its own in
/// each fork()ed child, so pass a duplicate to the command. Thread safety: any thread, as
/// LockHandle's readers.
int inheritable_descriptor(const LockHandle& handle) noexcept;

}  // namespace dlock::inline v0
