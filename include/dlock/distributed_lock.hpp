// SPDX-License-Identifier: Apache-2.0
//
// DistributedLock: one lock name on some store. The configuration selects the store (a ZooKeeper
// ensemble, files in a directory); it is not visible here. No Asio in this header: the async_ twins
// need <dlock/async.hpp>.
//
// MultiLock: several of them as one, all or nothing.
//
// Another implementation, such as a fake or a wrapper, provides its name and starts acquires. This
// class adds the rest. <dlock/testing/fake_lock.hpp> has a fake for tests.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "dlock/detail/unique_function.hpp"
#include "dlock/error.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/options.hpp"

namespace dlock::inline v0 {

namespace detail {
/// Called exactly once, on an unspecified thread that must not be kept.
using AcquireHandler = UniqueFunction<void(error_code, LockHandle)>;
/// Asks a running acquire to stop; harmless when it is over. Any thread.
using Canceller = UniqueFunction<void()>;
/// State that the locks of one manager share, for Mutex and the async_ twins. Opaque.
class LockContext;

/// Starts the asynchronous twin of an acquire. <dlock/async.hpp> specializes it.
template <class CompletionToken, class Lock>
struct AsyncAcquire {
  static constexpr bool is_included = false;
};

/// Ends the compilation of `acquire(5s)`.
template <class Rep>
LockHandle refuse_bare_wait() {
  static_assert(kNever<Rep>, "a wait is one of the options: write {.wait = 5s} instead of 5s");
  return {};
}
}  // namespace detail

/// Thread safety: all members may be called from any thread at the same time.
class DistributedLock {
 public:
  virtual ~DistributedLock();
  DistributedLock(const DistributedLock&) = delete;
  DistributedLock& operator=(const DistributedLock&) = delete;

  virtual const std::string& name() const noexcept = 0;
  /// Returns the store's name in the configuration, as the handles of this lock report it. For a
  /// lock that is being moved: the first store of its route. Default: empty, not known before an
  /// acquire.
  virtual const std::string& store() const noexcept;
  /// Returns how long acquire() waits without a `wait`: the `wait` of the route, or of the store.
  /// Empty (the default): without an end, or not known.
  virtual std::optional<std::chrono::milliseconds> default_wait() const noexcept;

  /// Waits for the lock and acquires it. A handle that is discarded releases it at once. Not
  /// re-entrant: a second acquire by the same thread waits for the first (use Mutex for re-entry).
  /// Throws LockError: timed_out, cancelled (by `stop`), unavailable, config_unsafe,
  /// invalid_argument, access_denied, closed. Throws std::bad_alloc if memory runs out in the
  /// calling thread; nothing is then left in the store.
  [[nodiscard]] LockHandle acquire(AcquireOptions options = {}, std::stop_token stop = {});
  /// Same; on error returns an empty handle and sets `ec`: `unavailable` instead of std::bad_alloc.
  [[nodiscard]] LockHandle acquire(AcquireOptions options, std::stop_token stop,
                                   error_code& ec) noexcept;
  /// Does not compile: write acquire({.wait = 5s}).
  template <class Rep, class Period, class... More>
  LockHandle acquire(std::chrono::duration<Rep, Period> /*wait*/, More&&... /*more*/) {
    return detail::refuse_bare_wait<Rep>();
  }

  /// Tries to acquire the lock; waits `options.wait` at most, default not at all. Returns nullopt
  /// if the store answered that another client holds the lock or is ahead in the queue. It may also
  /// fail while another try is under way, as std::mutex::try_lock may. A wait shorter than 1 s
  /// lasts until the first answer of the store, 1 s at most. Throws LockError for anything else:
  /// `unavailable` if the store did not answer.
  [[nodiscard]] std::optional<LockHandle> try_acquire(AcquireOptions options = {},
                                                      std::stop_token stop = {});
  /// Same; busy is nullopt with a clear `ec`.
  [[nodiscard]] std::optional<LockHandle> try_acquire(AcquireOptions options, std::stop_token stop,
                                                      error_code& ec) noexcept;
  /// Does not compile: write try_acquire({.wait = 5s}).
  template <class Rep, class Period, class... More>
  std::optional<LockHandle> try_acquire(std::chrono::duration<Rep, Period> /*wait*/,
                                        More&&... /*more*/) {
    return detail::refuse_bare_wait<Rep>();
  }

  /// Asynchronous twin of acquire(), for any Asio completion token. Needs <dlock/async.hpp>.
  template <class CompletionToken>
  auto async_acquire(AcquireOptions options, CompletionToken&& token) {
    using Twin = detail::AsyncAcquire<CompletionToken, DistributedLock>;
    static_assert(Twin::is_included, "async_acquire() needs: #include <dlock/async.hpp>");
    if constexpr (Twin::is_included) {
      return Twin::start(*this, options, std::forward<CompletionToken>(token));
    }
  }
  template <class CompletionToken>
  auto async_acquire(CompletionToken&& token) {
    return async_acquire(AcquireOptions{}, std::forward<CompletionToken>(token));
  }
  /// Does not compile: write async_acquire({.wait = 5s}, token).
  template <class Rep, class Period, class... CompletionToken>
  auto async_acquire(std::chrono::duration<Rep, Period> /*wait*/, CompletionToken&&... /*token*/) {
    return detail::refuse_bare_wait<Rep>();
  }

  // For std::lock_guard and its kin, which need an owner that is a thread.
  void lock() = delete;             // use dlock::Mutex mutex(lock);
  bool try_lock() = delete;         // use dlock::Mutex mutex(lock);
  void unlock() = delete;           // use dlock::Mutex mutex(lock);
  void lock_shared() = delete;      // use dlock::SharedMutex mutex(lock);
  bool try_lock_shared() = delete;  // use dlock::SharedMutex mutex(lock);
  void unlock_shared() = delete;    // use dlock::SharedMutex mutex(lock);

  /// The one function that an implementation must provide: starts an acquire, and returns its
  /// canceller. Without a `wait` the lock's default counts. `handler` is called exactly once, on
  /// any thread, also inside this call. It receives a handle, or an error and an empty handle. The
  /// error has a LockError's code; timed_out means that another client holds the lock.
  /// `options.diagnostics` is written before.
  virtual detail::Canceller start_acquire(AcquireOptions options,
                                          detail::AcquireHandler handler) = 0;

  /// With which locks it shares the re-entry of Mutex, by its name, and the thread for completion
  /// handlers without an executor. A lock around another returns the other's; the locks of a
  /// manager return the manager's. Default: none but itself; made at first use.
  virtual detail::LockContext& context() const;

 protected:
  DistributedLock() = default;

 private:
  mutable std::atomic<detail::LockContext*> own_context_{nullptr};
};

/// Several locks as one: all of them or none, one handle, one deadline. They may be of several
/// managers and stores. LockManager::lock_all() makes one of names.
///
///   auto both = locks.lock_all({"accounts/7", "accounts/3"});
///   dlock::LockHandle held = both->acquire({.wait = 5s});
///
/// Acquire. The locks are acquired one after the other in the order of their names, whatever order
/// they were passed in. Two clients that want the same locks therefore never wait for each other.
/// Locks of one name on several stores follow the order of the stores' names in the configuration,
/// so name a store the same everywhere. `wait` counts for all locks together, from the call on. No
/// further lock is asked for once it is over (a `wait` below 1 s: once 1 s is over). The last lock
/// that is asked for may add 1 s at most, until its store's first answer. 0 asks each lock once.
/// Without a `wait`, the shortest default_wait() counts for all. Each lock gets `lease` and `mode`.
/// When one lock fails, times out or is cancelled, the locks acquired before it are released, the
/// last one first. The handler is called when that has begun, not when it is done. The error is
/// that of the lock that failed, and its diagnostics name it. A lock that is lost meanwhile ends
/// the acquire with lock_lost, its name and the reason, or with `closed` if its manager was closed.
///
/// The handle. It is `lost` if one of its locks is, else `suspect` if one is. Its remaining() is
/// the smallest of them. At the first loss its stop is requested and its callbacks are called,
/// once. The other locks are renewed until the handle is released or destroyed, so that the work
/// can stop first. release() releases all locks, the last one first, without a wait in between. It
/// waits for all answers, the longest `release_timeout` at most. It returns lock_lost if one was
/// lost, else the first error. name() joins their names by ` // `; the result is not a valid name
/// of a single lock. store() joins the names of their different stores by `, `. token() is empty:
/// see LockHandle::sequencers(). Callbacks run on a thread of a manager whose lock has changed. The
/// handle may outlive the MultiLock. A MultiLock of one lock returns that lock's own handle.
///
/// Mutex re-enters a MultiLock of one manager per set of names and thread: two MultiLocks of the
/// same names re-enter each other. It re-enters a MultiLock of several managers per object and
/// thread. A single lock in it is another lock: a thread that holds them all and acquires one of
/// them alone waits for itself.
///
/// Thread safety: as DistributedLock. Keeps the locks alive.
class MultiLock final : public DistributedLock {
 public:
  /// A MultiLock among them counts as the locks in it.
  /// Throws LockError{invalid_argument} if `locks` is empty, or a lock in it is null or there
  /// twice. Twice means the same object, or one name of one manager or context(). Locks of two
  /// managers on one store are not known to be the same: the second one would wait for the first.
  explicit MultiLock(std::vector<std::shared_ptr<DistributedLock>> locks);
  ~MultiLock() override;

  const std::string& name() const noexcept override { return name_; }
  const std::string& store() const noexcept override { return store_; }
  std::optional<std::chrono::milliseconds> default_wait() const noexcept override;
  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override;
  detail::LockContext& context() const override;

  /// In the order in which they are acquired.
  const std::vector<std::shared_ptr<DistributedLock>>& locks() const noexcept { return locks_; }

 private:
  std::vector<std::shared_ptr<DistributedLock>> locks_;
  std::string name_;
  std::string store_;
  detail::LockContext* common_context_ = nullptr;
};

}  // namespace dlock::inline v0
