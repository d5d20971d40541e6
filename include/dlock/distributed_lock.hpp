// SPDX-License-Identifier: Apache-2.0
//
// DistributedLock: one lock name on some store. What is behind it (a ZooKeeper ensemble, files in
// a directory) is a matter of configuration and not visible here. No Asio in this header: the
// async_ twins are declared here and defined in <dlock/async.hpp>.
//
// A lock of one's own, a fake or one around another, says its name and starts acquires; the rest
// comes with it. <dlock/testing/fake_lock.hpp> has one for tests.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "dlock/detail/unique_function.hpp"
#include "dlock/error.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/options.hpp"

namespace dlock::inline v0 {

namespace detail {
/// Called exactly once, on an unspecified thread that must not be kept.
using AcquireHandler = UniqueFunction<void(error_code, LockHandle)>;
/// Asks a running acquire to stop; harmless when it is over. Any thread.
using Canceller = std::function<void()>;
/// What the locks of one manager share, for Mutex and the async_ twins. Opaque.
class LockContext;
}  // namespace detail

/// Thread safety: all members may be called from any thread at the same time.
class DistributedLock {
 public:
  virtual ~DistributedLock();
  DistributedLock(const DistributedLock&) = delete;
  DistributedLock& operator=(const DistributedLock&) = delete;

  virtual const std::string& name() const noexcept = 0;

  /// Waits for the lock and takes it. A handle that is not kept gives it back at once. Not
  /// re-entrant: a second acquire by the same thread waits for the first (use Mutex for re-entry).
  /// Throws LockError: timed_out, cancelled (by `stop`), unavailable, config_unsafe,
  /// invalid_argument, access_denied, closed.
  [[nodiscard]] LockHandle acquire(AcquireOptions options = {}, std::stop_token stop = {});
  /// Same; on error returns an empty handle and sets `ec`.
  [[nodiscard]] LockHandle acquire(AcquireOptions options, std::stop_token stop,
                                   error_code& ec) noexcept;

  /// Tries to take the lock; waits `options.wait` at most, default not at all.
  /// nullopt: not obtained in time. It may also fail while nobody holds the lock, when another try
  /// is under way, as std::mutex::try_lock may, or when the store answers later than the wait
  /// lasts. Throws LockError for anything else, `unavailable` only if the store was seen to fail.
  [[nodiscard]] std::optional<LockHandle> try_acquire(AcquireOptions options = {},
                                                      std::stop_token stop = {});
  /// Same; busy is nullopt with a clear `ec`.
  [[nodiscard]] std::optional<LockHandle> try_acquire(AcquireOptions options, std::stop_token stop,
                                                      error_code& ec) noexcept;

  /// Asynchronous twin of acquire(), for any Asio completion token; in <dlock/async.hpp>.
  template <class CompletionToken>
  auto async_acquire(AcquireOptions options, CompletionToken&& token);
  template <class CompletionToken>
  auto async_acquire(CompletionToken&& token);

  /// The one thing an implementation does: starts an acquire, and returns what cancels it. A wait
  /// that is not given is the lock's default. `handler` is called exactly once, on any thread, also
  /// inside this call: with a handle, or with an error (a LockError's codes; timed_out where
  /// somebody else has the lock) and an empty one; `options.diagnostics` is written before.
  virtual detail::Canceller start_acquire(AcquireOptions options,
                                          detail::AcquireHandler handler) = 0;

  /// With which locks it shares the re-entry of Mutex, by its name, and the thread for completion
  /// handlers without an executor. A lock around another returns the other's; the locks of a
  /// manager return the manager's. Default: none but itself; made at first use. Throws bad_alloc.
  virtual detail::LockContext& context() const;

 protected:
  DistributedLock() = default;

 private:
  mutable std::atomic<detail::LockContext*> own_context_{nullptr};
};

}  // namespace dlock::inline v0
