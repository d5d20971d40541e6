// SPDX-License-Identifier: Apache-2.0
//
// The errors of dlock in one portable vocabulary. Every operation completes with a
// boost::system::error_code. Each backend has its own category (`dlock.zookeeper`, ...). Its codes
// map to dlock::errc, so `ec == dlock::errc::unavailable` works with every store.
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <string>
#include <string_view>

namespace dlock::inline v0 {

/// The portable conditions, by what the caller does next. Values are permanent.
enum class errc {
  /// The wait ended without the lock. The last answer of the store was that another client holds
  /// the lock or is ahead in the queue, and no failure was seen since. The claim left nothing in
  /// the store.
  timed_out = 1,
  /// Stopped by the caller (stop token, cancellation slot). The claim left nothing in the store.
  cancelled = 2,
  /// The lock was held and is no longer: stop the work. Final for this handle.
  lock_lost = 3,
  /// Another client holds the lock that the call would release, renew or break. It was left as it
  /// is.
  not_holder = 4,
  /// The store could not be reached for longer than `connect_timeout`, did not answer within the
  /// wait, or failed after its last answer. The diagnostics name the cause. Safe to try again.
  unavailable = 5,
  /// The manager was closed, or this process is a fork()ed child of the one that opened it.
  closed = 6,
  /// The lock name breaks the rules; refused before any byte was sent.
  invalid_name = 7,
  /// An option is out of range for this store; the message names it and its limits.
  invalid_argument = 8,
  /// The configuration cannot be read; the message has file, line, value and remedy.
  config_invalid = 9,
  /// The configuration is not safe for this lock: the store cannot meet `require`, or a migration's
  /// plan needs another line. The message names the reason.
  config_unsafe = 10,
  /// This store has no such operation; the message says why.
  not_supported = 11,
  /// The store refused the client's credentials, or a permission that the client needs.
  access_denied = 12,
  /// The server answered something we do not understand.
  protocol = 13,
  /// A bug in the caller. `Mutex::unlock()`: the thread does not own the mutex. `lock()`: the
  /// thread holds the lock in shared mode and would wait for itself.
  operation_not_permitted = 14,
  /// No such lock, holder or token (status, break).
  not_found = 15,
  /// The guarded resource has seen a higher token: this grant is no longer the newest. Nothing was
  /// written.
  stale_token = 16,
  /// The store granted a token that is not above an earlier one of the same lock; the grant was
  /// given back. The message names both tokens and what to do.
  token_regressed = 17,
  /// Not the text of a sequencer, or of none that can be; the message says what is wrong with it.
  invalid_sequencer = 18,
  /// A file is not as it was written: truncated, altered, or another program's. Nothing was
  /// written.
  corrupt_file = 19,
  /// A migration has moved the lock to another store, or is about to; this client's configuration
  /// does not name the plan. The message names plan and store.
  moving = 20,
  /// A migration's record names a store that this configuration does not have.
  not_configured = 21,
  /// The queue is full: AcquireOptions::max_queue clients wait already. The claim left nothing in
  /// the store.
  queue_full = 24,
  /// A newer version of dlock wrote a record that this version cannot read. The record was left as
  /// it is. The message names both formats. Upgrade this program.
  newer_format = 25,
  /// A migration's gate is not there, or belongs to another start of the plan: nothing is acquired.
  no_gate = 26,
};

/// The category of dlock's own codes and of the portable conditions.
const boost::system::error_category& dlock_category() noexcept;

inline boost::system::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), dlock_category()};
}
inline boost::system::error_condition make_error_condition(errc e) noexcept {
  return {static_cast<int>(e), dlock_category()};
}

using boost::system::error_code;

/// Details that an error code cannot hold. Functions that do not throw write them to
/// AcquireOptions::diagnostics; LockError carries the same.
struct Diagnostics {
  std::string lock;         ///< the lock's name
  std::string store;        ///< the store's name in the configuration, never a URL
  std::string server_text;  ///< text of the server or the system, or which setting to change
};

/// Diagnostics::server_text where `timed_out` means that another process holds the lock.
inline constexpr std::string_view kHeldByAnother = "somebody else holds it";

/// Diagnostics::server_text where `timed_out` means that a semaphore had too few free permits.
inline constexpr std::string_view kTooFewPermits =
    "too few permits are free, or another waiter is ahead";

/// Thrown by the blocking forms. what() is one sentence with lock, store and the server's words.
class LockError : public boost::system::system_error {
 public:
  LockError(error_code ec, Diagnostics diagnostics);

  const std::string& lock() const noexcept { return diagnostics_.lock; }
  const std::string& store() const noexcept { return diagnostics_.store; }
  const std::string& server_text() const noexcept { return diagnostics_.server_text; }

 private:
  Diagnostics diagnostics_;
};

}  // namespace dlock::inline v0

template <>
struct std::is_error_condition_enum<dlock::errc> : std::true_type {};
template <>
struct boost::system::is_error_condition_enum<dlock::errc> : std::true_type {};
