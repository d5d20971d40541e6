// SPDX-License-Identifier: Apache-2.0
//
// The SPI: what a store must do for dlock. For authors of backends; users of locks never need it.
// Waiting, retry, deadlines, renewal, re-entry, events and metrics live in the core, once, above
// this line. examples/backend is a whole one, outside the tree.
//
// The core guarantees to a backend: every call is made on its loop; at most one call per claim is
// outstanding (a release may follow an extend in flight).
//
// A backend guarantees to the core: every call ends by its deadline; `unavailable` means surely not
// done, `unknown` means maybe done; a validity never ends after the store's lease, counted from the
// moment before the request was sent. It reads no clock and starts no timer but Env's.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dlock/capabilities.hpp"
#include "dlock/clock.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/claim.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/migration_store.hpp"

namespace dlock::inline v0 {

/// One store, reached. All members run on the loop of `Env::executor()`.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Effect: reaches the server, inspects its settings and computes capabilities(). Called before
  /// any other call, and again after a failure; not concurrently. A clear `error` is success.
  virtual asio::awaitable<Failure> connect(TimePoint deadline) = 0;

  /// Returns why the server cannot be reached at present. Clear while it can be reached, and while
  /// the first attempt is under way. Called while connect() is still trying, to distinguish a store
  /// that is down from one that is slow. Sends nothing.
  virtual Failure link_failure() const { return {}; }

  /// Returns what the attempt to reach the server waits for, or why the last one failed.
  /// Empty when connected, and when nothing is known. No I/O.
  virtual std::string pending_attempt() const { return link_failure().text; }

  /// Returns the promises of the store as configured. Valid after connect().
  virtual const Capabilities& capabilities() const noexcept = 0;

  /// Effect: runs the self-test (self_test/steps.hpp) on each server, also where an earlier one
  /// passed. A backend that has one also runs it before the first claim on a server. No other call
  /// runs it. Returns one report per server.
  /// Unless overridden: none.
  virtual asio::awaitable<std::vector<SelfTestReport>> self_test(TimePoint deadline);

  /// No I/O.
  virtual ClaimPtr make_claim(ClaimRequest request) = 0;

  /// Effect: asks for the lock, or for the state of the claim. Idempotent per owner id.
  /// Atomic with: the check that no other client holds it. The token is above every earlier one.
  /// Unknown: the claim may be in the store. The core asks again with the same claim, or releases
  /// it with `search`.
  /// Conflict: `busy`, `waiting` (another client holds it), `sealed`, `gate_changed`.
  virtual asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) = 0;

  /// Effect: returns when claim() should be called again. The lock may be free, the session is
  /// gone, a poll is due, interrupt() was called, or the deadline is reached. Survives a lost link.
  virtual asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) = 0;
  /// Ends a wait() on this claim soon. Harmless if there is none.
  virtual void interrupt(Claim& claim) noexcept = 0;

  /// Effect: renews granted claims; one answer for each, in order. With a session lease the claims
  /// are all that are held and one heartbeat renews them; without a lease it is never called.
  /// Atomic with: the check that each claim is still held. A claim that is gone is never created
  /// again.
  /// Unknown: the old validity counts.
  /// Conflict: `gone`, with the reason.
  virtual asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                            TimePoint deadline) = 0;

  /// Effect: releases a granted claim, or withdraws a waiting or unknown one. `search`: also
  /// searches for late copies of a request whose outcome was unknown.
  /// Atomic with: the check that the claim is still its owner's. Other claims are never changed.
  /// Unknown: the core repeats it until the lease is over.
  /// Conflict: `not_holder`.
  virtual asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool search,
                                                 TimePoint deadline) = 0;

  /// Effect: makes a granted exclusive claim a shared one, in its place and with its token.
  /// Atomic with: the check that it is still held. No other client is granted the lock exclusively
  /// in between. A release() may be called while it is under way, and counts.
  /// Unknown: the core treats it as shared, and may ask again.
  /// Conflict: `gone`, with the reason.
  /// Unless overridden: `failed`, not_supported.
  virtual asio::awaitable<DowngradeAnswer> downgrade(ClaimPtr held, TimePoint deadline);

  /// Effect: offers the granted exclusive claim for adoption, for `within` from now (until the
  /// claim ends, where the store has no clock for that). A claim with ClaimRequest::adoption of
  /// this owner, token and `proof` may then replace it, once and in one step. No other client is
  /// granted the lock in between. The new token is above both its own and every earlier one. From
  /// then on the offered claim is gone: extend() reports it, and release() leaves its successor
  /// alone. Until then it is renewed as before. An adopting claim() is idempotent per owner id as
  /// any other. It is `failed` with not_holder if the offer does not exist, or `within` is over
  /// (see not_adoptable()). A repeated offer with the same `proof` is harmless.
  /// Atomic with: the check that the claim is still held.
  /// Unknown: errc::unavailable; no other process has the proof.
  /// Conflict: not_holder: the claim is gone.
  /// Unless overridden: not_supported.
  virtual asio::awaitable<Failure> offer(ClaimPtr held, std::string proof,
                                         std::chrono::milliseconds within, TimePoint deadline);

  /// Effect: reads the holder of the lock, its token, and the waiters, as far as the store knows.
  virtual asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) = 0;
  /// Effect: as inspect(), for every lock whose name starts with the parts of `prefix` (all:
  /// empty). A failure beside the value states what could not be read and is left out.
  virtual asio::awaitable<Result<std::vector<LockStatus>>> list(std::string prefix,
                                                                TimePoint deadline) = 0;
  /// Effect: marks the record of the holder with `token`. extend() of a marked claim fails with
  /// LossReason::broken. The expiry stays, no other claim is granted, and release() by its owner
  /// deletes it. The holder is notified (EventSink::on_claim_broken()) where the store can push.
  /// Called again for a marked record, it answers the time that is left, and keeps the first mark.
  /// `at_once` deletes the record instead.
  /// Atomic with: the comparison of the token with `token`, and with renewals.
  /// Unknown: errc::unavailable.
  /// Conflict: not_holder (another token), not_found (not held), moving (a migration's record).
  /// Also not_supported: the holder would not notice the mark, `at_once` is needed.
  virtual asio::awaitable<EvictAnswer> evict(EvictRequest request, TimePoint deadline) = 0;

  /// Effect: asks the holder to release the lock. If its claim has `tell_asked` it is notified
  /// (EventSink::on_asked), also later if it is out of reach just now. `token` 0: any holder.
  /// Unknown: errc::unavailable.
  /// Conflict: as evict().
  /// Unless overridden: not_supported.
  virtual asio::awaitable<AskAnswer> ask(std::string name, std::uint64_t token, Revocation how,
                                         TimePoint deadline);
  /// Effect: reads the holders of permits of the semaphore, and the waiters.
  /// Unless overridden, here and below: not_supported.
  virtual asio::awaitable<Result<SemaphoreStatus>> inspect_semaphore(std::string name,
                                                                     TimePoint deadline);
  /// Effect: sets the number of permits of the semaphore. No holder loses permits; while more are
  /// held, none are granted. Waiters check again.
  /// Atomic with: grants.
  /// Unknown: errc::unavailable.
  virtual asio::awaitable<Failure> set_limit(std::string name, std::uint32_t limit,
                                             TimePoint deadline);
  /// Effect: the same as inspect_semaphore() of each semaphore that the store knows, and whose name
  /// starts with the parts of `prefix` (all: empty).
  virtual asio::awaitable<Result<std::vector<SemaphoreStatus>>> list_semaphores(std::string prefix,
                                                                                TimePoint deadline);
  /// Effect: as evict(), for all permits of the acquisition with `token`. Marked permits count as
  /// held.
  /// Unknown, conflict: as evict().
  virtual asio::awaitable<EvictAnswer> evict_permits(EvictRequest request, TimePoint deadline);

  /// Effect: until unwatch_holder(), EventSink::on_holder_changed() is called soon after the holder
  /// of the lock may have changed. It is also called after a time in which changes could not be
  /// seen (no link). A store that cannot see changes reports those of tell_holder_changed().
  /// Returns false if the store reports nothing: observers have to poll. The call waits for no I/O.
  /// While nothing changes the store is not asked. Called again for the same name after
  /// on_link_up().
  /// Unless overridden: false.
  virtual bool watch_holder(const std::string& name);
  /// Harmless if it is not watched.
  virtual void unwatch_holder(const std::string& name) noexcept;
  /// Effect: notifies the observers of that lock's holder, also those of other clients, if this
  /// store cannot see changes. The call does not wait, and does nothing without a link.
  /// Unless overridden: nothing.
  virtual void tell_holder_changed(const std::string& name);

  /// Returns the same store for code that moves locks. Unless overridden it takes no part in
  /// migrations.
  virtual MigrationStore& migration() noexcept { return no_migration(); }

  /// Reads again what capabilities() are derived from. Without an answer by the deadline nothing
  /// changes. Default: nothing is read again, since it cannot change within one connection.
  virtual asio::awaitable<void> look_again(TimePoint deadline);

  /// Effect: the work under this granted claim continues after close(), which must not free it.
  /// Returns what frees it when the work has ended. The core calls that once, on any thread, also
  /// after this object is gone. Empty: the store frees it when its lease is over. Default: empty.
  virtual Job leave_behind(ClaimPtr claim);

  /// Ends the session and all I/O; pending calls complete. No other call follows.
  virtual asio::awaitable<void> close(TimePoint deadline) = 0;
};

}  // namespace dlock::inline v0
