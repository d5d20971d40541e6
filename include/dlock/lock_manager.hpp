// SPDX-License-Identifier: Apache-2.0
//
// LockManager: makes locks from a URL or a YAML file. One manager serves a whole process. It keeps
// one connection (session) per store, one background thread for all I/O and one that reports
// losses, for any number of locks and waiters. While user callbacks block that thread, others are
// made (64 at most), which end again. Completion handlers without an executor, and the log, have
// one thread each while they have work. All these threads have all signals blocked. A blocking call
// that is alone does the I/O on its own thread (OpenOptions::io_on_calling_threads). A call that
// needs a thread that cannot be made (RLIMIT_NPROC, pids.max) fails with `unavailable`, and the
// next call tries again.
//
// pthread_cancel() of a thread inside one of the blocking calls takes effect after the call: use a
// std::stop_token to end a wait.
//
//   auto locks =
//   dlock::LockManager::open("zookeeper://10.0.0.1,10.0.0.2,10.0.0.3/app?session_timeout=10s");
//   auto lock = locks.lock("orders/42");
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "dlock/capabilities.hpp"
#include "dlock/config.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/semaphore.hpp"
#include "dlock/sequencer.hpp"

namespace dlock::inline v0 {

struct BackendDescriptor;  // <dlock/spi/descriptor.hpp>
namespace detail {
struct ManagerAccess;  // for Leader and Schedule
}
enum class LogLevel { debug, info, warning, error };

/// A lost lock, as OpenOptions::on_loss receives it.
struct Loss {
  std::string name;   ///< the lock's name
  std::string store;  ///< in the configuration
  std::optional<std::uint64_t> token;
  LossReason reason = LossReason::none;
  bool through_mutex = false;  ///< a Mutex or synchronized() held it
  std::string broken_by{};     ///< as LockHandle::broken_by()
};

/// Outcome of LockManager::evict().
struct Evicted {
  bool is_free = false;  ///< false: the record is marked, and the wait has ended
  /// Time until the lock is free at the latest. With EvictOptions::at_once: time in which the old
  /// holder may still work. Empty: no bound is known, as on ZooKeeper when the wait has ended.
  std::optional<std::chrono::milliseconds> within{};
};

/// How LockManager::evict() breaks a lock.
struct EvictOptions {
  /// Why, at most 200 bytes. The holder, its log and `dlock status` show it.
  std::string reason = {};
  /// Frees the lock at once. The old holder may still work under it: two clients may treat the
  /// lock as held until its local deadline.
  bool at_once = false;
  /// Longest time to wait until the lock is free. 0: does not wait. Default: no bound. The mark
  /// stays when the time is over.
  std::optional<std::chrono::milliseconds> wait = std::nullopt;
  /// Called once in the calling thread when the record is marked and not free yet.
  std::function<void(const Evicted&)> on_marked = {};
};

struct OpenOptions {
  /// The backends to choose from by URL scheme, for a program that links only one:
  /// `{.backends = {&dlock::local::backend()}}`.
  std::vector<const BackendDescriptor*> backends = {};
  /// Receives warnings (a store without `require` that promises little, clipped values). Called on
  /// its own thread, one line at a time. It may block, call dlock, or throw (ignored). Only close()
  /// waits for it, a second at most. Up to a thousand lines are queued; the number of dropped lines
  /// is logged. Default: standard error, in spdlog's form, from `warning` up.
  std::function<void(LogLevel, std::string_view)> log = {};
  /// Called exactly once for each lost lock of the manager, whether a handle, a Mutex or
  /// synchronized() held it. Also called for the locks that close() ends (reason closed), and for a
  /// lock that the store reports as lost at its release (reason removed). Called where that
  /// handle's own callbacks are (see LockHandle::on_state), after its stop token and before them.
  /// It may be called for several locks at the same time. May block, or call dlock; must not throw.
  /// Default: none.
  std::function<void(const Loss&)> on_loss = {};
  /// Writes one line to the log for each lost lock: a warning, for reason closed an info.
  bool log_losses = true;
  /// A blocking call does the manager's I/O on its own thread while it waits, so that no other
  /// thread is woken. Conditions: no other call waits, and the thread has the manager's scheduling
  /// class, at least its priority, and 256 KiB of stack left. A thread that is stopped meanwhile,
  /// inside a signal handler or by a debugger, renews no lock of the process. All locks are then
  /// lost at their deadlines. False: only the manager's thread does the I/O. For programs whose
  /// threads may stop, or have separate credentials, namespaces or system call filters.
  bool io_on_calling_threads = true;
  /// Writes one warning to the log where threads of this process acquire locks of the manager in
  /// opposite orders and can block each other. The warning has the names, and how and where each
  /// was asked for. It considers threads that hold a lock by a Mutex, synchronized() or a blocking
  /// call, and wait for another one by one of those. A handle counts for the thread that acquired
  /// it until it is released or lost, wherever it was moved. Locks of async_acquire(), permits of
  /// semaphores, and locks of a thread beyond 16 at a time do not count. A try that does not wait
  /// is not checked, because it cannot block. The last 4096 pairs are remembered.
  bool watch_lock_order = true;

  /// With all backends that were built into the target dlock::dlock (defined there, not in
  /// dlock::core).
  static OpenOptions built_in();
};

/// One store of a manager, as `dlock doctor` shows it.
struct StoreReport {
  std::string name;     ///< in the configuration
  std::string backend;  ///< `zookeeper`, `local`, ...
  bool reached = false;
  std::optional<Capabilities> capabilities;  ///< empty if never reached
  error_code error;                          ///< why not reached, or why `require` refuses it
  std::string message;
};

/// Outcome of LockManager::ask().
struct Asked {
  std::optional<std::uint64_t> token;  ///< the holder's
  std::optional<bool> heard;           ///< whether the holder listens for it; empty: not known
};

/// Move-only. Thread safety: all members may be called from any thread, but not while another
/// moves or destroys the object.
class LockManager {
 public:
  /// Reads the URL and checks every value; connects on first use.
  /// Throws LockError{config_invalid} with what to write instead; {unavailable} if the process has
  /// no descriptor left (RLIMIT_NOFILE).
  static LockManager open(std::string_view url) { return open(url, OpenOptions::built_in()); }
  static LockManager open(std::string_view url, OpenOptions options);
  /// Same from a YAML file; errors carry file and line.
  static LockManager from_file(const std::string& path) {
    return from_file(path, OpenOptions::built_in());
  }
  static LockManager from_file(const std::string& path, OpenOptions options);
  static LockManager from_config(Config config, OpenOptions options);
  /// Uses the configuration that DLOCK_CONFIG (a file) or DLOCK_STORE (a URL) names. Throws
  /// config_invalid if neither is set, or both.
  static LockManager from_environment() { return from_environment(OpenOptions::built_in()); }
  static LockManager from_environment(OpenOptions options);

  LockManager(LockManager&&) noexcept;
  LockManager& operator=(LockManager&&) noexcept;
  /// close(). In a fork()ed child: touches nothing of the parent's.
  ~LockManager();

  /// Reaches every store now and checks `require`. Throws LockError{unavailable, config_unsafe,
  /// access_denied}; the error_code form returns the first failure. `timeout`: default each
  /// store's connect_timeout.
  void connect(std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  /// Returns the lock of that name, on the store that its route names. Sends nothing. Throws
  /// LockError{invalid_name}, or {config_invalid} if no route matches.
  std::shared_ptr<DistributedLock> lock(std::string name);
  /// Returns all of them as one lock, all or nothing, each on the store that its route names
  /// (MultiLock). Sends nothing. Throws as lock(), and LockError{invalid_argument} if `names` is
  /// empty or has a name twice.
  std::shared_ptr<MultiLock> lock_all(const std::vector<std::string>& names);

  /// Adopts a grant that another process has exported (LockHandle::export_grant()), in one step of
  /// the store and with a higher token. A grant can be adopted once. The lock is valid here from
  /// the start of this call's own request. No other client holds it before, between or beside.
  /// `options` are as for an acquire; `max_queue` has no effect. The call waits only for the store.
  /// Throws as acquire(), and LockError:
  /// - not_holder: the grant was adopted by another process, released, or is over; the message says
  ///   which;
  /// - invalid_argument: it is not such a text, or the mode is shared;
  /// - config_invalid, before anything is sent: the lock's route here names another store than the
  ///   text;
  /// - not_supported, before anything is sent: the store, or a route with `migrate`, cannot adopt.
  [[nodiscard]] LockHandle adopt(std::string_view text, AcquireOptions options = {});
  /// Same; on error returns an empty handle and sets `ec`.
  [[nodiscard]] LockHandle adopt(std::string_view text, AcquireOptions options,
                                 error_code& ec) noexcept;
  /// Does not compile: write adopt(text, {.wait = 5s}).
  template <class Rep, class Period, class... More>
  LockHandle adopt(std::string_view /*text*/, std::chrono::duration<Rep, Period> /*wait*/,
                   More&&... /*more*/) {
    return detail::refuse_bare_wait<Rep>();
  }
  /// For the other forms of acquire: returns the exported lock; acquiring it adopts the grant.
  /// Sends nothing. Throws as adopt() does before anything is sent.
  std::shared_ptr<DistributedLock> exported(std::string_view text);

  /// Returns the semaphore of that name, with `limit` permits, on the store that its route names.
  /// The first client that acquires permits writes the limit into the store. A client with another
  /// limit then fails with `invalid_argument`, which names both. Empty: the limit in the store. A
  /// semaphore and a lock of one name are independent. Sends nothing. Throws as lock(), and
  /// LockError{invalid_argument} for a limit that is 0 or above kMostPermits. Throws it also for a
  /// store without semaphores (Capabilities::permits), and for a route with `migrate`.
  Semaphore semaphore(std::string name, std::optional<std::uint32_t> limit = std::nullopt);
  /// Returns its limit, the holders of permits and the waiters. Throws LockError{unavailable,
  /// not_supported, ...}.
  SemaphoreStatus semaphore_status(const std::string& name);
  /// Sets the limit, whether the semaphore was used before or not. No holder loses permits; while
  /// more are held, none are granted. An acquire or a waiter with another limit fails. Throws as
  /// semaphore(), and LockError{unavailable, access_denied, ...}.
  void set_semaphore(const std::string& name, std::uint32_t limit);
  /// Returns the semaphore_status() of every semaphore whose limit a store knows, held or not, and
  /// whose name starts with the prefix's parts. Asks all stores that have semaphores and can list
  /// them.
  std::vector<SemaphoreStatus> list_semaphores(const std::string& prefix = {});
  /// Same; adds an error to `unread` for each store whose list is incomplete or missing.
  std::vector<SemaphoreStatus> list_semaphores(const std::string& prefix,
                                               std::vector<LockError>& unread);
  /// Breaks all permits that were acquired with `token`, as evict() breaks a lock. Marked permits
  /// count as held. Throws LockError{not_holder (the message names the holders), not_found (no
  /// client holds permits), not_supported, unavailable}.
  Evicted evict_permits(const std::string& name, std::uint64_t token, EvictOptions options = {},
                        std::stop_token stop = {});

  /// Returns the holder of the lock and the waiters. `timeout` bounds the call; default:
  /// `connect_timeout` and one request. Throws LockError{unavailable, not_supported, ...}.
  LockStatus status(const std::string& name,
                    std::optional<std::chrono::milliseconds> timeout = std::nullopt);
  /// Returns every lock whose name starts with the prefix's parts, or matches it if it is a pattern
  /// as in RouteConfig::match. Asks all stores that can list. Leaves out records that it may not
  /// read. Throws LockError{invalid_name, unavailable, access_denied, not_supported, ...}.
  std::vector<LockStatus> list(const std::string& prefix = {});
  /// Same; adds an error to `unread` for each store whose list is incomplete, or missing while
  /// another store has one (`not_supported`: the store cannot list).
  std::vector<LockStatus> list(const std::string& prefix, std::vector<LockError>& unread);
  /// Whether that grant is still the present one of its lock, by the word of its store: for a
  /// service that was handed it (docs/fencing.md). The store must have the same name in the
  /// service's configuration, and the lock's name must be routed to it; else `unknown`, with the
  /// reason. A store that cannot be asked is `unknown` too, with its failure. Waits for the answer,
  /// at most connect_timeout and a request_timeout.
  StandingReport check(const Sequencer& sequencer);
  /// Breaks the lock if its holder still has `token`. First marks the record: the holder cannot
  /// renew, and no other client acquires. Then blocks until the holder has dropped its handle, or
  /// until the expiry seen when marking (ZooKeeper: one session timeout after the mark). The holder
  /// is notified, at its next renewal at the latest: LossReason::broken, LockHandle::broken_by(). A
  /// second call for a marked record waits for the same end. On ZooKeeper each call waits one
  /// session timeout at most. `stop` ends the wait; the record stays marked. Throws
  /// LockError{not_holder, not_found, not_supported, unavailable}. not_supported also when the
  /// holder would not notice the mark: another program, or on ZooKeeper an older dlock. Such a lock
  /// can be broken with EvictOptions::at_once only. `unavailable` ends the wait when the store has
  /// not answered for 10 s. The message says whether the record is marked or may be.
  Evicted evict(const std::string& name, std::uint64_t token, EvictOptions options = {},
                std::stop_token stop = {});
  /// Asks the holder to release the lock (LockHandle::on_revoke()); with `token`, only a holder
  /// with that token. Returns which holder it asked, and whether that listens, as far as the store
  /// knows. It does not wait for the result. The holder is notified of `within`; the caller decides
  /// whether to break the lock after that time. Throws LockError{not_holder, not_found,
  /// not_supported, unavailable}.
  Asked ask(const std::string& name, std::optional<std::uint64_t> token = std::nullopt,
            std::optional<std::chrono::milliseconds> within = std::nullopt);

  /// Tries to reach every store and reports what each promises. Does not throw for a store that is
  /// down.
  std::vector<StoreReport> inspect(std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  /// Tests whether the servers of `store` refuse what another owner may not do. The keys of the
  /// test expire after 10 s. Returns one report per server; none if the store has no self-test. A
  /// manager runs the same test before its first lock on a server. Throws LockError{unavailable,
  /// ...} if the store cannot be reached.
  std::vector<SelfTestReport> self_test(const std::string& store);

  /// Compares `config` with the note that managers leave in `store` of the routes by which they
  /// lock there. Returns a sentence for each route of another configuration whose names `config`
  /// does not route to `store`: two programs may hold one lock. Stores that cannot keep the note
  /// (Memcached) have none. Throws LockError{unavailable, ...}.
  std::vector<std::string> route_conflicts(const Config& config, const std::string& store);

  /// Stops the work under locks, renews the locks until it has stopped, then releases them. In this
  /// order:
  ///  1. acquires under way end with `closed`, as do later calls;
  ///  2. every lock that is held becomes lost, reason closed: its stop is requested, its callbacks
  ///     are called;
  ///  3. close() waits, while it renews the lock, until the handle is released or destroyed, if its
  ///     stop_token() was used; else until its callbacks have returned. It waits for the store's
  ///     `release_timeout` at most. A handle without a stop token and callbacks is not waited for;
  ///  4. then the lock is released, which is waited for, again `release_timeout` at most. A lock
  ///     whose work has not ended by then is not released. Redis, Memcached and ZooKeeper keep it
  ///     until its lease or session is over, local files and memory until the handle is destroyed.
  /// Then the threads end. A late copy of a request that was never answered is searched for once
  /// more. A copy that arrives after that lasts a lease at most. Other calls that are still under
  /// way end with `closed`. A thread that works under a lock must not wait for close() before it
  /// releases its handle: each would wait for the other, for `release_timeout`.
  ///
  /// Waits for callbacks and completion handlers, for the longest `release_timeout` once more at
  /// most. A callback that has not begun by then is dropped. One that does not return is left to
  /// its thread. Inside a callback it waits for no callback, except by 3. for that of a lock that
  /// is still held.
  void close() noexcept;

 private:
  friend struct detail::ManagerAccess;
  struct Impl;
  explicit LockManager(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dlock::inline v0
