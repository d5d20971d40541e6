// SPDX-License-Identifier: Apache-2.0
//
// DualHold: what a grant in mode dual rests on. The user has the handle of one store, T's token on
// it; behind it are the lock in the other store (phase 1) and the registration. It can be believed
// as long as all of these can; losing one loses all; giving it back gives back T, then S. It is
// suspect when the shown store's lock is; of the one beside only the loss is told.
//
// What is left in the stores when it is lost stays there until whoever had it has let go of it, or
// until the deadline that he had been told: he has not stopped before. Else the next one would be
// granted T in the moment in which S forgets.
#pragma once

#include <memory>

#include "core/store/hold.hpp"
#include "dlock/lock_handle.hpp"
#include "migration/dual/registration.hpp"

namespace dlock::core::migration {

/// Told on the loop that the hold it listens to is lost.
class LossListener {
 public:
  virtual ~LossListener() = default;
  virtual void on_hold_lost(LossReason why) = 0;
};

/// Beside a hold that no user has: says when it is lost, to whoever listens at that time.
class HoldWatch final : public HoldDependency {
 public:
  /// Watches the hold in `handle`.
  static std::shared_ptr<HoldWatch> beside(const LockHandle& handle);
  void listen(std::weak_ptr<LossListener> listener) { listener_ = std::move(listener); }
  TimePoint until() const noexcept override { return kNever; }
  void on_lost(LossReason why) override;

 private:
  std::weak_ptr<LossListener> listener_;  ///< loop only
};

/// Lives as long as the shown hold.
class DualHold final : public HoldDependency,
                       public Dependent,
                       public LossListener,
                       public std::enable_shared_from_this<DualHold> {
 public:
  /// The handle for the user. `beside`: the lock in the other store, with its watch; empty in
  /// phases 0 and 2.
  static LockHandle join(LockHandle shown, LockHandle beside, std::shared_ptr<HoldWatch> watch,
                         std::shared_ptr<Registration> registration);

  DualHold(std::weak_ptr<Hold> shown, LockHandle beside, std::shared_ptr<HoldWatch> watch,
           std::shared_ptr<Registration> registration);

  TimePoint until() const noexcept override;
  void on_lost(LossReason why) override;
  std::string broken_by() override {
    return beside_hold_ ? beside_hold_->broken_by() : std::string();
  }
  void on_let_go() override { give_back(); }
  Releaser::Done on_release(Releaser::Done done) override;
  void on_registration_over(LossReason why) override;
  void on_hold_lost(LossReason why) override;

 private:
  void lose(LossReason why);
  /// Until when the user may have believed in it.
  TimePoint promised() const noexcept;
  void give_back();

  const std::weak_ptr<Hold> shown_;
  const std::shared_ptr<Hold> beside_hold_;  ///< null: there is none
  const std::shared_ptr<Registration> registration_;
  const std::shared_ptr<HoldWatch> watch_;
  LockHandle beside_;     ///< loop only
  bool is_over_ = false;  ///< it was lost, and that is settled
};

}  // namespace dlock::core::migration
