// SPDX-License-Identifier: Apache-2.0
//
// HoldDependency: another condition for a hold beside its own claim (another lock, a registration),
// and the actions there when the hold ends. Set once, before a handle of the hold exists.
#pragma once

#include <memory>
#include <string>

#include "core/store/releaser.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::core {

class Hold;

class HoldDependency {
 public:
  virtual ~HoldDependency() = default;
  /// Any thread: the hold is valid until this time at most; TimePoint::min(): not any more.
  virtual TimePoint until() const noexcept = 0;
  /// Any thread: why the hold is lost when that moment has passed.
  virtual LossReason why() const noexcept { return LossReason::expired; }
  /// Any thread: the hold is held, suspect or lost from now on. Its mutex is locked.
  virtual void on_change(HandleState /*state*/, LossReason /*why*/) noexcept {}
  /// Any thread: the user has released the hold. Returns true if the dependency has handled the
  /// release and `done`: the hold must not release its claim.
  virtual bool take_back(Hold& /*hold*/, Releaser::Done& /*done*/) { return false; }
  /// The loop: returns the hold that the user's handle has, if it is another one; null: it is this
  /// one.
  virtual std::shared_ptr<Hold> holder() noexcept { return nullptr; }
  /// As LockHandle::broken_by(), of the other lock.
  virtual std::string broken_by() { return {}; }
  /// The loop: false if no handle exists for the lock (a cached claim that no caller uses).
  virtual bool has_user() noexcept { return true; }
  /// Any thread: its descriptor may be open elsewhere from now on.
  virtual void on_inherited() noexcept {}
  /// The loop: another client asks for the lock.
  virtual void on_contended() {}
  /// The loop, soon after the hold was lost, for any reason, wherever the loss was seen first.
  virtual void on_lost(LossReason why) = 0;
  /// The loop: called when the user drops the handle of a lost hold.
  virtual void on_let_go() {}
  /// The loop, when the hold is given back: what to call when that is done, instead of `done`.
  virtual Releaser::Done on_release(Releaser::Done done) { return done; }
};

}  // namespace dlock::core
