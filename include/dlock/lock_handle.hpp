// SPDX-License-Identifier: Apache-2.0
//
// LockHandle: a lock that is held. Move-only; the owner is the handle, never the thread, so it may
// be taken on one thread and released on another.
//
//   dlock::LockHandle held = lock->acquire({.wait = 5s});
//   write(record, held.token());      // the guarded resource refuses lower tokens
//   held.check();                     // throws LockError{lock_lost} if it is no longer ours
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

/// held: ours. suspect: a renewal is overdue or the link is down, the local deadline has not yet
/// passed; may become held again. lost: no longer ours, final. released: given back by us, final.
enum class HandleState { held, suspect, lost, released };

enum class LossReason {
  none,
  expired,          ///< the local deadline passed without a renewal the store confirmed
  session_ended,    ///< the store ended our session
  removed,          ///< our entry in the store is gone: deleted or flushed
  taken,            ///< the store says somebody else holds it
  evicted,          ///< the store dropped it under memory pressure
  store_restarted,  ///< the store came back without its data
  failover,         ///< another server took over that may not know us
  closed,           ///< the manager was closed, or the process is a fork()ed child
  broken,           ///< an operator broke it (`dlock break`, LockManager::evict())
  max_hold,         ///< it was held for AcquireOptions::max_hold
  no_progress,      ///< progress() was not called for AcquireOptions::progress_every
  access_denied,  ///< the local deadline passed while the store refused our password or certificate
};

const char* to_string(HandleState value) noexcept;
const char* to_string(LossReason value) noexcept;

using StateCallback = std::function<void(HandleState, LossReason)>;

/// Somebody has asked the holder to give the lock back (LockManager::ask(), `dlock break --ask`,
/// Curator's Revoker). To follow it is the holder's own choice.
struct Revocation {
  /// Who asks, as he wrote it; empty: not known. Nobody checks that it is true.
  std::string who;
  /// In which time, from the moment of asking; then it may be broken. Empty: he did not say.
  std::optional<std::chrono::milliseconds> within;
};

using ContendedCallback = std::function<void()>;
using RevokeCallback = std::function<void(const Revocation&)>;

/// Thread safety: distinct handles are independent; one handle may be read (state, token,
/// remaining, check, stop_token) from any thread while no other moves, releases or destroys it.
class LockHandle {
 public:
  /// An empty handle: owns nothing, state() is released.
  LockHandle() noexcept;
  /// For who grants locks: a store's loop, a fake.
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

  /// In which way it is held; of several locks as it was asked for.
  Mode mode() const noexcept;

  /// So many permits of a semaphore are in it (Semaphore::acquire); 0: it is a lock.
  std::uint32_t permits() const noexcept;

  /// The fencing token; empty on a store of token strength `none`, and of several locks
  /// (MultiLock): see sequencers(). Of permits it is the number of this acquisition. Successive
  /// holders of a cached lock (`cache`, `cohort`) in one process have the same token.
  std::optional<std::uint64_t> token() const noexcept;

  /// The grant in a form to pass on to the service that is guarded; empty where token() is, and of
  /// permits: a service cannot tell by a number who of several is late. Stays
  /// what it was when the lock is lost: that is what the service refuses it by.
  /// Throws LockError{invalid_sequencer} if the store's name in the configuration has over 255
  /// bytes.
  std::optional<Sequencer> sequencer() const;
  /// One for each lock that it holds and that has a token, in the order of their names: a resource
  /// is fenced with the token of its own lock. Of a single lock what sequencer() says. Throws as
  /// that does.
  std::vector<Sequencer> sequencers() const;

  /// The state now. Compares the clock with the local deadline: never says held or suspect after
  /// it.
  HandleState state() const noexcept;
  LossReason loss_reason() const noexcept;
  /// Returns the breaker of the lock and the reason: `dlock (pid 7) on host: reason`. Empty if the
  /// lock was not broken, and where the store does not say.
  std::string broken_by() const;
  /// What is left to the local deadline; zero once lost; empty where the store has no lease.
  std::optional<std::chrono::nanoseconds> remaining() const noexcept;

  /// Throws LockError{lock_lost} if the lock is not ours any more by the local deadline. Of several
  /// locks the error names the one.
  void check() const;
  /// Same, without throwing.
  void check(error_code& ec) const noexcept;

  /// Requested when the lock is lost, also if the handle is released just then. Stop callbacks run
  /// on a thread of the manager's, as those of on_state() do and before them; a std::stop_callback
  /// waits in its own destructor.
  std::stop_token stop_token() const noexcept;

  /// Calls `callback` at each change: suspect, held again, lost (exactly once, final). Called soon
  /// with the present state if that is not held. Runs on a thread of the manager's, with all
  /// signals blocked, one call at a time for one handle; it may block or call dlock. It delays what
  /// this handle has to tell and nothing else: not the loop, no other handle's stop token or
  /// callbacks (up to 64 of which may block at the same time), no completion handler, and close()
  /// for a bounded time only. It must not throw: an exception is logged.
  void on_state(StateCallback callback);

  /// Calls `callback` once, when somebody else asks for the lock, or soon if somebody has; only of
  /// a lock with AcquireOptions::tell_contention, or one that its store keeps for the process
  /// (`cache`). Who asked may have given up since. Runs where those of on_state() do, and by the
  /// same rules.
  void on_contended(ContendedCallback callback);

  /// Calls `callback` each time that somebody asks for the lock back, and soon if somebody has;
  /// only of a lock with AcquireOptions::revocable. Nothing else happens: the lock is given back by
  /// who holds it, or not. Runs where those of on_state() do, and by the same rules.
  void on_revoke(RevokeCallback callback);

  /// The work has come on: AcquireOptions::progress_every counts from now. Does nothing without
  /// that option, nor once it is lost. Takes no lock and no system call beyond the clock's. Any
  /// thread.
  void progress() noexcept;

  /// Releases the lock and waits until the store has confirmed it, at most `release_timeout` (store
  /// option, default 5 s). While the store answers no other release, the wait ends at most 250 ms
  /// after the local deadline. Empties the handle.
  /// When it returns no state callback of this handle runs any more, nor will one: it waits for the
  /// one that is running, however long that takes, so hold no mutex that a callback locks. Inside
  /// a callback of this very handle it does not wait for that one: what the callback uses must live
  /// until it returns.
  /// Returns lock_lost if it was no longer ours (the next owner is left alone); unavailable if the
  /// store did not answer in time (the release goes on in the background). Ends the process if
  /// memory runs out, as the destructor does.
  error_code release() noexcept;

  /// From exclusive to shared without a gap: nobody else holds it exclusively in between, token and
  /// deadline stay, and readers that wait behind it come in. Does nothing if it is shared already.
  /// Waits for the store, a request_timeout at most. Not while another thread reads the handle.
  /// Whatever comes of it but `not_supported`, `lock_lost` and `closed`, mode() is shared from then
  /// on. Returns unavailable if the store did not confirm it: the others may be kept out as before;
  /// it may be called again. not_supported: of several locks, of a store without shared mode, or
  /// where the store cannot do it just now; it is exclusive still.
  error_code downgrade() noexcept;

  /// Makes the grant another process's: the text that it gives lets one who has it adopt the grant,
  /// once (LockManager::adopt()). It is a secret; dlock shows it nowhere. Empties the handle: from
  /// before the text is made nobody holds the lock here, check() says lock_lost, and its stop is
  /// requested, on this thread; on_state() and on_loss are not told, for it is no loss. Stop the
  /// work first, as before release(). The lock is not free: this manager keeps it alive in the
  /// store until it is adopted, or gives it back when `within` is over, or when it is closed. If
  /// this process dies the lock lasts as its lease does, and can be adopted until then. Waits for
  /// the store, a request_timeout at most, and as release() does for callbacks. On an error the
  /// handle holds what it held. Throws LockError: not_supported (this store, a reader, permits,
  /// several locks, a route with `migrate`, a lock that stays with its process: the message says
  /// why), invalid_argument, lock_lost, unavailable (try again), closed.
  [[nodiscard]] std::string export_grant(ExportOptions options = {});
  /// Same; on error returns an empty text and sets `ec`.
  [[nodiscard]] std::string export_grant(ExportOptions options, error_code& ec) noexcept;

  /// For async.hpp: starts the release; `done` is called once, on an unspecified thread, when the
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
