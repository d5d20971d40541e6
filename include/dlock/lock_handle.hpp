// SPDX-License-Identifier: Apache-2.0
//
// LockHandle: a lock that is held. Move-only; the owner is the handle, never the thread, so it may
// be acquired on one thread and released on another.
//
//   dlock::LockHandle held = lock->acquire({.wait = 5s});
//   write(record, held.token());      // the guarded resource refuses lower tokens
//   held.check();                     // throws LockError{lock_lost} if the lock was lost
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <vector>

#include "dlock/detail/unique_function.hpp"
#include "dlock/error.hpp"
#include "dlock/exported_grant.hpp"
#include "dlock/mode.hpp"
#include "dlock/sequencer.hpp"

namespace dlock::inline v0 {

namespace detail {
class Grant;  // <dlock/detail/grant.hpp>
struct GrantAccess;
/// False for every type: fails a static_assert when a template is used, not when it is read.
template <class>
inline constexpr bool kNever = false;
}  // namespace detail

/// - held: this handle holds the lock.
/// - suspect: a renewal is overdue or the link is down, and the local deadline has not passed. It
///   may become held again.
/// - lost: this handle no longer holds the lock. Final.
/// - released: the handle was released. Final.
enum class HandleState { held, suspect, lost, released };

enum class LossReason {
  none,
  expired,          ///< the local deadline passed without a renewal the store confirmed
  session_ended,    ///< the store ended this client's session
  removed,          ///< the record in the store is gone: deleted or flushed
  taken,            ///< the store reports another holder
  evicted,          ///< the store dropped it under memory pressure
  store_restarted,  ///< the store restarted without its data
  failover,         ///< the store failed over to a server that may not know the claim
  closed,           ///< the manager was closed, or the process is a fork()ed child
  broken,           ///< an operator broke it (`dlock break`, LockManager::evict())
  max_hold,         ///< it was held for AcquireOptions::max_hold
  no_progress,      ///< progress() was not called for AcquireOptions::progress_every
  access_denied,  ///< the local deadline passed while the store refused our password or certificate
  gate_not_confirmed,  ///< a migration's gate could not be read in time
};

const char* to_string(HandleState value) noexcept;
const char* to_string(LossReason value) noexcept;

using StateCallback = std::function<void(HandleState, LossReason)>;

/// A request to the holder to release the lock (LockManager::ask(), `dlock break --ask`, Curator's
/// Revoker). The holder decides whether it follows the request.
struct Revocation {
  /// The requester, as it describes itself; empty: not known. Not verified.
  std::string who;
  /// Time from the request after which the lock may be broken. Empty: the requester set none.
  std::optional<std::chrono::milliseconds> within;
};

using ContendedCallback = std::function<void()>;
using RevokeCallback = std::function<void(const Revocation&)>;

/// Thread safety: distinct handles are independent. Any number of threads may read one handle
/// (state, token, remaining, check, stop_token) while no thread moves, releases or destroys it.
class LockHandle {
 public:
  /// An empty handle: owns nothing, state() is released.
  LockHandle() noexcept;
  /// For code that grants locks: a store's loop, a fake.
  explicit LockHandle(std::shared_ptr<detail::Grant> grant) noexcept;
  LockHandle(LockHandle&&) noexcept;
  LockHandle& operator=(LockHandle&&) noexcept;
  /// Starts the release and does not wait for it: the manager does, when it is closed. Waits for a
  /// callback that is running, as release() does; so does the assignment, for the lock it replaces.
  ~LockHandle();

  /// True if there is a lock in it that was neither released nor moved away. Says nothing about
  /// loss.
  explicit operator bool() const noexcept { return grant_ != nullptr; }

  const std::string& name() const noexcept;
  /// The store's name in the configuration, never its URL.
  const std::string& store() const noexcept;

  /// Returns the mode in which the lock is held; for several locks the mode that was asked for.
  Mode mode() const noexcept;

  /// Returns the number of permits of a semaphore in it (Semaphore::acquire). 0: it is a lock.
  std::uint32_t permits() const noexcept;

  /// The fencing token. Empty on a store of token strength `none`, and for several locks
  /// (MultiLock): see sequencers(). For permits it is the number of this acquisition. Successive
  /// holders of a cached lock (`cache`, `cohort`) in one process have the same token.
  std::optional<std::uint64_t> token() const noexcept;

  /// Returns the grant in a form to pass on to the guarded service. Empty where token() is, and for
  /// permits: a number does not show the service which of several holders is late. It does not
  /// change when the lock is lost: the service refuses late requests by it. Throws
  /// LockError{invalid_sequencer} if the store's name in the configuration has over 255 bytes.
  std::optional<Sequencer> sequencer() const;
  /// Returns a sequencer for each held lock that has a token, in the order of their names. A
  /// resource is fenced with the token of its own lock. For a single lock: that of sequencer().
  /// Throws as sequencer().
  std::vector<Sequencer> sequencers() const;

  /// Returns the state now. Compares the clock with the local deadline: never held or suspect after
  /// it.
  HandleState state() const noexcept;
  LossReason loss_reason() const noexcept;
  /// Returns the breaker of the lock and the reason: `dlock (pid 7) on host: reason`. Empty if the
  /// lock was not broken, and where the store does not say.
  std::string broken_by() const;
  /// Returns the time until the local deadline; zero once lost; empty where the store has no lease.
  std::optional<std::chrono::nanoseconds> remaining() const noexcept;

  /// Throws LockError{lock_lost} if this handle does not hold the lock any more by the local
  /// deadline. For several locks the error names the lost one.
  void check() const;
  /// Sets `ec` instead of throwing.
  void check(error_code& ec) const noexcept;

  /// Requested when the lock is lost, also if the handle is released just then. Stop callbacks run
  /// on a thread of the manager's, as those of on_state() do and before them; a std::stop_callback
  /// waits in its own destructor.
  std::stop_token stop_token() const noexcept;

  /// Calls `callback` at each change: suspect, held again, lost (exactly once, final). Called soon
  /// with the present state if that is not held. Runs on a thread of the manager's, with all
  /// signals blocked, one call at a time for one handle. It may block or call dlock. It then delays
  /// the other callbacks of this handle, and close() for a bounded time. It does not delay the
  /// loop, other handles' stop tokens and callbacks, or completion handlers. Up to 64 callbacks may
  /// block at the same time. It must not throw: an exception is logged.
  void on_state(StateCallback callback);

  /// Calls `callback` once when another client asks for the lock, or soon if one has asked already.
  /// Needs AcquireOptions::tell_contention, or a lock that its store keeps for the process
  /// (`cache`). The other client may have given up since. Runs on the same threads as on_state()
  /// callbacks, by the same rules.
  void on_contended(ContendedCallback callback);

  /// Calls `callback` at each request to release the lock, and soon if one was made already. Needs
  /// AcquireOptions::revocable. Nothing else happens: the holder decides whether to release the
  /// lock. Runs on the same threads as on_state() callbacks, by the same rules.
  void on_revoke(RevokeCallback callback);

  /// Reports progress of the work: the time of AcquireOptions::progress_every starts again. Does
  /// nothing without that option, and after a loss. Uses no mutex and no system call beyond the
  /// clock's. Thread safety: any thread.
  void progress() noexcept;

  /// Releases the lock and waits until the store has confirmed it, at most `release_timeout` (store
  /// option, default 5 s). While the store answers no other release, the wait ends at most 250 ms
  /// after the local deadline. Empties the handle.
  /// When it returns, no state callback of this handle runs, and none will run. It waits for a
  /// callback that is running, without a time limit, so hold no mutex that a callback locks. Inside
  /// a callback of this handle it does not wait for that one: objects that the callback uses must
  /// live until it returns. Returns lock_lost if this handle did not hold the lock any more (the
  /// next holder is not affected). Returns unavailable if the store did not answer in time (the
  /// release continues in the background). Ends the process if memory runs out, as the destructor
  /// does.
  error_code release() noexcept;

  /// Changes the lock from exclusive to shared without a gap: no other client holds it exclusively
  /// in between. Token and deadline stay, and readers that wait behind it get the lock. Does
  /// nothing if it is shared already. Waits for the store, a request_timeout at most. Not while
  /// another thread reads the handle. After every result except `not_supported`, `lock_lost` and
  /// `closed`, mode() is shared. Returns unavailable if the store did not confirm it: the others
  /// may be kept out as before, and it may be called again. Returns not_supported for several
  /// locks, a store without shared mode, or where the store cannot do it just now; the lock is then
  /// still exclusive.
  error_code downgrade() noexcept;

  /// Exports the grant to another process. Returns a text with which a process can adopt the grant,
  /// once (LockManager::adopt()). The text is a secret; dlock shows it nowhere. Empties the handle.
  /// Before the text is made, this process stops holding the lock: check() reports lock_lost, and
  /// the stop is requested on this thread. on_state() and on_loss are not called, because this is
  /// not a loss. Stop the work first, as before release(). The lock is not free: this manager
  /// renews it in the store until it is adopted. The manager releases it when `within` is over, or
  /// when the manager is closed. If this process dies, the lock lasts until its lease is over, and
  /// can be adopted until then. Waits for the store, a request_timeout at most, and as release()
  /// does for callbacks. On an error the handle is unchanged. Throws LockError: not_supported,
  /// invalid_argument, lock_lost, unavailable (try again), closed. The message of not_supported has
  /// the reason: the store, a reader, permits, several locks, a route with `migrate`, or a lock
  /// kept by its process.
  [[nodiscard]] std::string export_grant(ExportOptions options = {});
  /// Same; on error returns an empty text and sets `ec`.
  [[nodiscard]] std::string export_grant(ExportOptions options, error_code& ec) noexcept;

  /// For async.hpp: starts the release. `done` is called once, on an unspecified thread, when the
  /// store has answered and no callback of this handle runs any more.
  void start_release(detail::UniqueFunction<void(error_code)> done);
  /// For async.hpp: starts what downgrade() does; `done` is called once, on an unspecified thread,
  /// also inside. The handle may be moved meanwhile.
  void start_downgrade(detail::UniqueFunction<void(error_code)> done);

 private:
  friend struct detail::GrantAccess;
  std::shared_ptr<detail::Grant> grant_;
};

/// Reports the missing include. <dlock/async.hpp> has an overload that the compiler prefers.
template <class Handle, class... CompletionToken>
requires std::is_same_v<Handle, LockHandle>
void async_release(Handle& /*handle*/, CompletionToken&&... /*token*/) {
  static_assert(detail::kNever<Handle>, "async_release() needs: #include <dlock/async.hpp>");
}
template <class Handle, class... CompletionToken>
requires std::is_same_v<Handle, LockHandle>
void async_downgrade(Handle& /*handle*/, CompletionToken&&... /*token*/) {
  static_assert(detail::kNever<Handle>, "async_downgrade() needs: #include <dlock/async.hpp>");
}

}  // namespace dlock::inline v0
