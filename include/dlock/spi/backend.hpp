// SPDX-License-Identifier: Apache-2.0
//
// The SPI: what a store must do for dlock. For authors of backends; users of locks never need it.
// Waiting, retry, deadlines, renewal, re-entry, events and metrics live in the core, once, above
// this line. examples/backend is a whole one, outside the tree.
//
// The core guarantees to a backend: every call comes on its loop; at most one call per claim is
// outstanding (a release may follow an extend in flight).
// A backend guarantees to the core: every call ends by its deadline; `unavailable` means surely not
// done, `unknown` means maybe done; a validity is never later than the store's patience counted
// from the moment before the request was sent. It reads no clock and starts no timer but Env's.
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

  /// Why the server cannot be reached at present, as far as an attempt has failed; clear while it
  /// can be, and while the first attempt is under way. For whoever asks while connect() goes on
  /// trying: it tells a store that is down from one that is slow. No I/O.
  virtual Failure link_failure() const { return {}; }

  /// Returns what the attempt to reach the server waits for, or why the last one failed.
  /// Empty when connected, and when nothing is known. No I/O.
  virtual std::string pending_attempt() const { return link_failure().text; }

  /// What the store promises as configured. Valid after connect().
  virtual const Capabilities& capabilities() const noexcept = 0;

  /// Effect: runs the self-test (self_test/steps.hpp) on each server, also where an earlier one
  /// passed. A backend that has one also runs it before the first claim on a server. No other call
  /// runs it. Returns one report per server. Unless overridden: none.
  virtual asio::awaitable<std::vector<SelfTestReport>> self_test(TimePoint deadline);

  /// No I/O.
  virtual ClaimPtr make_claim(ClaimRequest request) = 0;

  /// Effect: asks for the lock, or asks how the claim stands. Idempotent per owner id.
  /// Atomic with: the check that nobody else has it; its token is above every earlier one.
  /// Unknown: the claim may be in the store. The core asks again with the same claim, or releases
  /// it with `search`.
  /// Conflict: `busy`, `waiting` (somebody has it), `sealed`, `gate_changed`.
  virtual asio::awaitable<ClaimAnswer> claim(ClaimPtr claim, TimePoint deadline) = 0;

  /// Effect: returns when claim() should be called again: the lock may be free, the session is
  /// gone, a poll is due, interrupt() was called, or the deadline is reached. Survives a lost link.
  virtual asio::awaitable<void> wait(ClaimPtr claim, TimePoint deadline) = 0;
  /// Ends a wait() on this claim soon. Harmless if there is none.
  virtual void interrupt(Claim& claim) noexcept = 0;

  /// Effect: renews granted claims; one answer for each, in order. With a session lease the claims
  /// are all that are held and one heartbeat renews them; without a lease it is never called.
  /// Atomic with: the check that each claim still is ours. One that is gone is never made anew.
  /// Unknown: the old validity counts.
  /// Conflict: `gone`, with the reason.
  virtual asio::awaitable<std::vector<ExtendAnswer>> extend(std::vector<ClaimPtr> claims,
                                                            TimePoint deadline) = 0;

  /// Effect: gives back a granted claim, or withdraws a waiting or unknown one. `search`: also
  /// looks for copies of a request whose outcome was unknown and that may have arrived late.
  /// Atomic with: the check that it still is ours. Nobody else's claim is ever touched.
  /// Unknown: the core repeats it until the lease is over.
  /// Conflict: `not_holder`.
  virtual asio::awaitable<ReleaseAnswer> release(ClaimPtr claim, bool search,
                                                 TimePoint deadline) = 0;

  /// Effect: makes a granted exclusive claim a shared one, in its place and with its token.
  /// Atomic with: the check that it still is ours; nobody else is granted the lock exclusively in
  /// between. A release() may come while it is under way, and counts.
  /// Unknown: the core takes it for shared, and may ask again.
  /// Conflict: `gone`, with the reason.
  /// Unless overridden: `failed`, not_supported.
  virtual asio::awaitable<DowngradeAnswer> downgrade(ClaimPtr held, TimePoint deadline);

  /// Effect: for `within` from now (as long as the claim lasts, where the store has no clock for
  /// that) a claim with ClaimRequest::adoption of this owner, token and
  /// `proof` may take the place of the granted exclusive one: once, in one step, in which nobody
  /// else is granted the lock, and with a token above both its own and every earlier one. From then
  /// on the claim is gone: extend() says so, and release() leaves its successor alone. Until then
  /// it is renewed as before. An adopting claim() is idempotent per owner id as any other, and
  /// `failed` with not_holder where there is no such claim, or `within` is over (see
  /// not_adoptable()). To offer again with the same `proof` does no harm. Atomic with: the check
  /// that it still is ours. Unknown: errc::unavailable; nobody has been told the proof. Conflict:
  /// not_holder: it is gone. Unless overridden: not_supported.
  virtual asio::awaitable<Failure> offer(ClaimPtr held, std::string proof,
                                         std::chrono::milliseconds within, TimePoint deadline);

  /// Effect: who holds the lock, with which token, and who waits, as far as the store knows.
  virtual asio::awaitable<Result<LockStatus>> inspect(std::string name, TimePoint deadline) = 0;
  /// Effect: the same of every lock whose name starts with the parts of `prefix` (all: empty). A
  /// failure beside the value says what could not be read and is left out.
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

  /// Effect: asks the holder to give the lock back: if its claim has `tell_asked` it is told
  /// (EventSink::on_asked), also if it cannot hear it just now. `token` 0: whoever has it.
  /// Unknown: errc::unavailable.
  /// Conflict: as evict().
  /// Unless overridden: not_supported.
  virtual asio::awaitable<AskAnswer> ask(std::string name, std::uint64_t token, Revocation how,
                                         TimePoint deadline);
  /// Effect: who holds permits of the semaphore, and who waits.
  /// Unless overridden, here and below: not_supported.
  virtual asio::awaitable<Result<SemaphoreStatus>> inspect_semaphore(std::string name,
                                                                     TimePoint deadline);
  /// Effect: the semaphore has `limit` permits from now on. Nobody loses any; while more are held,
  /// none are granted. Those who wait look again.
  /// Atomic with: grants. Unknown: errc::unavailable.
  virtual asio::awaitable<Failure> set_limit(std::string name, std::uint32_t limit,
                                             TimePoint deadline);
  /// Effect: the same as inspect_semaphore() of each semaphore that the store knows, and whose name
  /// starts with the parts of `prefix` (all: empty).
  virtual asio::awaitable<Result<std::vector<SemaphoreStatus>>> list_semaphores(std::string prefix,
                                                                                TimePoint deadline);
  /// Effect: as evict(), for all permits of the acquisition with `token`. Marked permits count as
  /// held. Unknown, conflict: as evict().
  virtual asio::awaitable<EvictAnswer> evict_permits(EvictRequest request, TimePoint deadline);

  /// Effect: from now on, until unwatch_holder(), EventSink::on_holder_changed() is called soon
  /// after the lock may have passed from one holder to another, or to nobody; also after what could
  /// not be heard (no link). A store that cannot see that itself tells what tell_holder_changed()
  /// says. False: this store tells nobody; who wants to know has to look. No I/O is waited for.
  /// While nothing changes the store is not asked. Called again for the same name after
  /// on_link_up(). Unless overridden: false.
  virtual bool watch_holder(const std::string& name);
  /// Harmless if it is not watched.
  virtual void unwatch_holder(const std::string& name) noexcept;
  /// Effect: those who watch the holder of that lock, on other clients too, are told that it has
  /// changed, if this store cannot see it by itself. Not waited for, and nothing if there is no
  /// link. Unless overridden: nothing.
  virtual void tell_holder_changed(const std::string& name);

  /// The same store for those who move locks. Unless overridden it takes no part.
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
