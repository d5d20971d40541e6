// SPDX-License-Identifier: Apache-2.0
//
// Hold: what a LockHandle and the store's loop share about one granted claim. The handle reads it
// on any thread; the loop moves the deadline on and reports changes; whoever first sees the local
// deadline passed makes it lost. Changes are counted under one mutex, so that they are told in the
// order in which they happened, and lost exactly once. Each hold tells for itself, one thing at a
// time: it waits for no other hold's user code.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "core/loop/crew.hpp"
#include "core/store/hold_dependency.hpp"
#include "core/store/notifier.hpp"
#include "core/store/releaser.hpp"
#include "core/store/use_bound.hpp"
#include "dlock/detail/grant.hpp"
#include "dlock/lock_handle.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::core {

class Host;
class Store;

class Hold final : public Errand, public detail::Grant, public std::enable_shared_from_this<Hold> {
 public:
  Hold(std::shared_ptr<Host> host, std::weak_ptr<Store> store, Identity identity,
       const ClaimPtr& claim, TimePoint deadline);
  /// Another of the same claim, for as long as `dependency` says so, which decides what becomes of
  /// the claim at the end. Any thread.
  Hold(const Hold& claimed, std::shared_ptr<HoldDependency> dependency);

  const Identity& identity() const noexcept override { return identity_; }
  int inherit() noexcept override {
    is_inherited_.store(true, std::memory_order_release);
    if (dependency_) dependency_->on_inherited();
    return identity_.inheritable_descriptor;
  }
  bool is_inherited() const noexcept { return is_inherited_.load(std::memory_order_acquire); }
  Host& host() const noexcept { return *host_; }
  const std::weak_ptr<Store>& store() const noexcept { return store_; }

  // Any thread.
  HandleState state() noexcept override;
  LossReason reason() const noexcept override;
  std::string broken_by() override;
  /// Before become(lost, broken).
  void set_broken_by(std::string by);
  std::optional<Duration> remaining() noexcept override;
  std::stop_token stop_token() const noexcept override {
    expect_owner();
    return notifier_.stop_token();
  }
  void on_state(StateCallback callback) override;
  void on_contended(ContendedCallback callback) override;
  void on_revoke(RevokeCallback callback) override;
  void progress() noexcept override;
  void renew_within(Duration time) override;
  /// Somebody else asks for the lock.
  void note_contended() noexcept;
  /// Somebody asks for it back.
  void note_asked(const Revocation& how);
  /// Its user's time; begins before he has it.
  UseBound& bound() noexcept { return bound_; }
  /// Lost or given back; does not look at the clock.
  bool has_ended() const noexcept { return notifier_.has_ended(); }
  bool is_left() noexcept;
  /// From now on a user has it: the manager's on_loss is told of its loss, too.
  void hand_out() noexcept;
  /// What to tell if the store says, when it is given back, that it was lost; empty: no user had
  /// it.
  std::optional<Loss> loss_at_release();
  void hand_to_mutex() noexcept override { of_mutex_.store(true, std::memory_order_release); }
  /// For whom the end must wait that the manager makes of it: for nobody, until its callbacks have
  /// returned (when_told), until whoever took the stop token has let go of it (when_left).
  enum class Audience { nobody, callbacks, owner };
  Audience audience() noexcept;
  /// Held, not suspect, and to be believed now. Locks nothing.
  bool is_sure() const noexcept;
  bool is_handed_to_mutex() const noexcept { return of_mutex_.load(std::memory_order_acquire); }
  /// As if the stop token had been taken.
  void expect_owner() const noexcept { stop_is_taken_.store(true, std::memory_order_release); }
  void downgrade(Done done) override;
  void export_grant(std::chrono::milliseconds within, Exported done) override;
  void end_export() noexcept override;
  void release(Done done) noexcept override;
  void release_quietly(Done done) noexcept override;
  /// Held or suspect becomes released. False: it was lost before.
  bool give_back() noexcept;
  /// The same, for another process to have it: its claim stays. False: it was lost before.
  bool give_away() noexcept;
  bool is_given_away() const noexcept { return given_away_; }
  /// The loop: by which it is adopted once it is exported; empty: none was made yet.
  std::string& secret() noexcept { return secret_; }
  /// Until when it can be believed; kNever without a lease, TimePoint::min() when that is over.
  TimePoint until() const noexcept;
  /// What its own claim promised last, also when it is lost: nobody believed in it longer.
  TimePoint promised() const noexcept {
    return TimePoint(Duration(deadline_.load(std::memory_order_acquire)));
  }
  /// Whoever had it has let go of it after it was lost.
  void let_go();

  /// Its handle is gone: no state callback begins from now on. A stop that is due is requested all
  /// the same.
  void leave() noexcept;
  /// After leave(): returns when no callback of it runs any more. At once inside one of them, and
  /// in a fork()ed child.
  void wait_quiet() noexcept override;
  void post_callback(Job job) override;

  /// This process is a fork()ed child of the one that acquired.
  bool is_foreign() const noexcept { return notifier_.is_foreign(); }

  // The loop.
  /// From now on it rests on that as well. Once, before anybody has the handle.
  void depend_on(std::shared_ptr<HoldDependency> dependency) {
    dependency_ = std::move(dependency);
  }
  const std::shared_ptr<HoldDependency>& dependency() const noexcept { return dependency_; }
  /// Null once it was given back or lost.
  ClaimPtr claim() const noexcept { return claim_.lock(); }
  void move_deadline(TimePoint deadline) noexcept;
  /// While its owner waits for just that, and nobody else reads it.
  void become_shared() noexcept { identity_.mode = Mode::shared; }
  void become(HandleState state, LossReason reason = LossReason::none) noexcept;
  /// The reason of a loss at the deadline.
  LossReason at_deadline() const noexcept { return at_deadline_.load(std::memory_order_acquire); }
  void set_at_deadline(LossReason reason) noexcept {
    at_deadline_.store(reason, std::memory_order_release);
  }
  /// Calls `job` on the loop when all that there is to tell of its end has been told: it was given
  /// back, or it is lost, and its stop token and callbacks have had their say. Once; also when the
  /// manager is closing. It should not keep the manager alive.
  void when_told(Job job);
  /// Calls `job` on the loop when whoever had the handle has let go of it. Once; likewise.
  void when_left(Job job);
  /// Calls `job` when the owner drops the handle, on the owner's thread. At once if it is dropped.
  void at_drop(Job job);

 private:
  using Lock = Notifier::Lock;

  LossReason why_over() const noexcept;
  bool change(HandleState state, LossReason reason) noexcept;
  Loss loss(LossReason why, std::string by) const;
  void run() override;
  void log_thrown(const std::exception_ptr& thrown) const;
  void start_notifying(const Lock& lock) noexcept;
  void listen(Notifier::Callback callback);
  void post_to_loop(Job job) noexcept;

  const std::shared_ptr<Host> host_;
  const std::weak_ptr<Store> store_;
  Identity identity_;
  std::atomic<bool> is_inherited_ = false;
  const std::weak_ptr<Claim> claim_;  ///< the loop owns it, and alone may see it end
  std::shared_ptr<HoldDependency> dependency_;

  std::atomic<TimePoint::rep> deadline_;
  UseBound bound_;
  std::atomic<LossReason> at_deadline_{LossReason::expired};
  mutable std::atomic<bool> stop_is_taken_{false};
  std::atomic<bool> of_mutex_{false};

  bool given_away_ = false;  ///< the loop's
  std::string secret_;       ///< likewise

  Notifier notifier_;
  // Its lock guards:
  std::unique_ptr<const std::string> broken_by_;
  Job at_drop_;
  Job when_told_;
  Job when_left_;
};

/// Looks into a handle, for the core.
struct HandleAccess {
  /// Null: it is empty, or nothing of a store's is in it (a fake).
  static std::shared_ptr<Hold> hold(const LockHandle& handle) noexcept;
  static std::shared_ptr<Hold> hold(const std::shared_ptr<detail::Grant>& grant) noexcept;
};

}  // namespace dlock::core
