// SPDX-License-Identifier: Apache-2.0
//
// Grant: what a LockHandle is a handle of. A manager's are its holds, which the store's loop keeps;
// a test may have another (<dlock/testing/fake_handle.hpp>). What each member has to do is what the
// handle promises of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "dlock/detail/unique_function.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/mode.hpp"

namespace dlock::inline v0::detail {

/// Thread safety: all members from any thread.
class Grant {
 public:
  struct Identity {
    std::string name;
    std::string store;
    std::optional<std::uint64_t> token;
    /// Keeps the lock as long as it is open anywhere; -1: there is no such thing.
    int inheritable_descriptor = -1;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 0;  ///< of a semaphore; 0: it is a lock
  };
  using Done = UniqueFunction<void(error_code)>;

  virtual ~Grant() = default;
  /// Does not change, but for the mode in downgrade().
  virtual const Identity& identity() const noexcept = 0;
  virtual HandleState state() noexcept = 0;
  virtual LossReason reason() const noexcept = 0;
  /// As LockHandle::broken_by().
  virtual std::string broken_by() { return {}; }
  virtual std::optional<std::chrono::nanoseconds> remaining() noexcept = 0;
  virtual std::stop_token stop_token() const noexcept = 0;
  virtual void on_state(StateCallback callback) = 0;
  /// Identity::inheritable_descriptor, for somebody who will pass it on.
  virtual int inherit() noexcept { return identity().inheritable_descriptor; }
  /// LockHandle's. Unless overridden nothing ever calls it.
  virtual void on_contended(ContendedCallback /*callback*/) {}
  virtual void on_revoke(RevokeCallback /*callback*/) {}
  virtual void progress() noexcept {}
  /// The holder stops its work `time` after a confirmation, so that renewals must be repeated
  /// within it. Unless overridden nothing changes.
  virtual void renew_within(std::chrono::nanoseconds /*time*/) {}
  /// A Mutex has it from now on.
  virtual void hand_to_mutex() noexcept {}

  /// LockHandle::downgrade(): `done` is told once what came of it, on any thread, also inside.
  /// identity().mode has changed by then.
  virtual void downgrade(Done done);

  using Exported = UniqueFunction<void(error_code, std::string)>;
  /// LockHandle::export_grant(): `done` is told once, on any thread, also inside: the text, and it
  /// is held no longer; or an error and the reason, and it is as it was.
  virtual void export_grant(std::chrono::milliseconds within, Exported done);
  /// After that has gone well: who works under it is told to stop. Returns when no callback of it
  /// runs any more; at once inside one of them.
  virtual void end_export() noexcept {}

  /// The handle lets go of it: no callback begins from now on, and it is given back if it is not
  /// lost. `done`, if there is one, is told once what came of it, on any thread, also inside. Once.
  virtual void release(Done done) noexcept = 0;
  /// Same, and `done` is told when no callback of it runs any more; inside one of them as above.
  virtual void release_quietly(Done done) noexcept = 0;
  /// After release(): returns when no callback of it runs any more; at once inside one of them.
  virtual void wait_quiet() noexcept = 0;
  /// Runs what calls user code, apart from the loop: neither waits for the other, nor for another
  /// callback. `job` throws nothing. Any thread.
  virtual void post_callback(UniqueFunction<void()> job);

 protected:
  Grant() = default;
  Grant(const Grant&) = default;
  Grant& operator=(const Grant&) = default;
};

/// Looks into a handle.
struct GrantAccess {
  static const std::shared_ptr<Grant>& grant(const LockHandle& handle) noexcept {
    return handle.grant_;
  }
  /// The handle is empty then, and nothing was released.
  static std::shared_ptr<Grant> take(LockHandle& handle) noexcept {
    return std::exchange(handle.grant_, nullptr);
  }
};

}  // namespace dlock::inline v0::detail
