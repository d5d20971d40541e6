// SPDX-License-Identifier: Apache-2.0
//
// Hold: what a LockHandle and the store's loop share about one granted claim. The handle reads it
// on any thread; the loop moves the deadline on and reports changes; whoever first sees the local
// deadline passed makes it lost. Changes and their notifications happen under one mutex, so that
// they are told in the order in which they happened, and lost exactly once.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/companion.hpp"
#include "dlock/backend.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::core {

class Host;
class Store;

class Hold : public std::enable_shared_from_this<Hold> {
 public:
  struct Identity {
    std::string name;
    std::string store;
    std::optional<std::uint64_t> token;
    int inheritable_descriptor = -1;
    Mode mode = Mode::exclusive;
  };

  Hold(std::shared_ptr<Host> host, std::weak_ptr<Store> store, Identity identity,
       const ClaimPtr& claim, TimePoint deadline);

  const Identity& identity() const noexcept { return identity_; }
  Host& host() const noexcept { return *host_; }
  const std::weak_ptr<Store>& store() const noexcept { return store_; }

  // Any thread.
  HandleState state() noexcept;
  LossReason reason() const noexcept { return reason_.load(std::memory_order_acquire); }
  std::optional<Duration> remaining() noexcept;
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  void on_state(StateCallback callback);
  /// Held or suspect becomes released. False: it was lost before.
  bool give_back() noexcept;
  /// Until when it can be believed; kNever without a lease, TimePoint::min() when that is over.
  TimePoint until() const noexcept;
  /// What its own claim promised last, also when it is lost: nobody believed in it longer.
  TimePoint promised() const noexcept {
    return TimePoint(Duration(deadline_.load(std::memory_order_acquire)));
  }
  /// Whoever had it has let go of it after it was lost.
  void let_go() noexcept;
  /// This process is a fork()ed child of the one that acquired.
  bool is_foreign() const noexcept;

  // The loop.
  /// From now on it rests on that as well. Once, before anybody has the handle.
  void accompany(std::shared_ptr<Companion> companion) { companion_ = std::move(companion); }
  const std::shared_ptr<Companion>& companion() const noexcept { return companion_; }
  /// Null once it was given back or lost.
  ClaimPtr claim() const noexcept { return claim_.lock(); }
  void move_deadline(TimePoint deadline) noexcept;
  void become(HandleState state, LossReason reason = LossReason::none) noexcept;

 private:
  bool change(HandleState state, LossReason reason) noexcept;
  void notify(HandleState state, LossReason reason);

  const std::shared_ptr<Host> host_;
  const std::weak_ptr<Store> store_;
  const Identity identity_;
  const std::weak_ptr<Claim> claim_;  ///< the loop owns it, and alone may see it end
  const unsigned generation_;
  std::shared_ptr<Companion> companion_;

  std::atomic<TimePoint::rep> deadline_;
  std::atomic<HandleState> state_{HandleState::held};
  std::atomic<LossReason> reason_{LossReason::none};
  std::mutex mutex_;
  std::vector<std::shared_ptr<const StateCallback>> callbacks_;
  std::stop_source stop_;
};

/// Looks into a handle, for the core.
struct HandleAccess {
  static const std::shared_ptr<Hold>& hold(const LockHandle& handle) noexcept {
    return handle.hold_;
  }
};

/// A descriptor that keeps the lock as long as it is open anywhere (a child process inherits it);
/// -1 where the store has no such thing. Valid while the handle is.
int inheritable_descriptor(const LockHandle& handle) noexcept;

}  // namespace dlock::core
