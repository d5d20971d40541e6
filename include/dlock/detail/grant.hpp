// SPDX-License-Identifier: Apache-2.0
//
// Grant: the object behind a LockHandle. A manager's grants are its holds, which the store's loop
// keeps. A test may have another (<dlock/testing/fake_handle.hpp>). Each member does what the
// handle's member of that name promises.
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
    /// Keeps the lock while it is open in any process; -1: the store has none.
    int inheritable_descriptor = -1;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 0;  ///< a semaphore's; 0: it is a lock
  };
  using Done = UniqueFunction<void(error_code)>;

  virtual ~Grant() = default;
  /// Constant, except for the mode in downgrade().
  virtual const Identity& identity() const noexcept = 0;
  virtual HandleState state() noexcept = 0;
  virtual LossReason reason() const noexcept = 0;
  /// As LockHandle::broken_by().
  virtual std::string broken_by() { return {}; }
  virtual std::optional<std::chrono::nanoseconds> remaining() noexcept = 0;
  virtual std::stop_token stop_token() const noexcept = 0;
  virtual void on_state(StateCallback callback) = 0;
  /// Returns Identity::inheritable_descriptor to code that passes it on to another process.
  virtual int inherit() noexcept { return identity().inheritable_descriptor; }
  /// See LockHandle. Unless overridden, the callbacks are never called.
  virtual void on_contended(ContendedCallback /*callback*/) {}
  virtual void on_revoke(RevokeCallback /*callback*/) {}
  virtual void progress() noexcept {}
  /// The holder stops its work `time` after a confirmation, so that renewals must be repeated
  /// within it. Unless overridden nothing changes.
  virtual void renew_within(std::chrono::nanoseconds /*time*/) {}
  /// A Mutex owns it from now on.
  virtual void hand_to_mutex() noexcept {}

  /// As LockHandle::downgrade(). `done` receives the result once, on any thread, also inside.
  /// identity().mode has changed by then.
  virtual void downgrade(Done done);

  using Exported = UniqueFunction<void(error_code, std::string)>;
  /// As LockHandle::export_grant(). `done` is called once, on any thread, also inside. It receives
  /// the text, and the grant is no longer held; or an error and the reason, and the grant is
  /// unchanged.
  virtual void export_grant(std::chrono::milliseconds within, Exported done);
  /// Called after a successful export: the work under the grant is asked to stop. Returns when no
  /// callback of it runs any more; at once inside one of them.
  virtual void end_export() noexcept {}

  /// Called once, when the handle drops it. No callback begins from now on. The grant is released
  /// if it is not lost. `done`, if not empty, receives the result once, on any thread, also inside.
  virtual void release(Done done) noexcept = 0;
  /// As release(); `done` is called when no callback of it runs any more. Inside one of them: as
  /// above.
  virtual void release_quietly(Done done) noexcept = 0;
  /// After release(): returns when no callback of it runs any more; at once inside one of them.
  virtual void wait_quiet() noexcept = 0;
  /// Runs a job that calls user code, apart from the loop: neither waits for the other, nor for
  /// another callback. `job` throws nothing. Thread safety: any thread.
  virtual void post_callback(UniqueFunction<void()> job);

 protected:
  Grant() = default;
  Grant(const Grant&) = default;
  Grant& operator=(const Grant&) = default;
};

/// Access to the grant in a handle.
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
