// SPDX-License-Identifier: Apache-2.0
//
// HoldDependency: what a hold rests on beside its own claim (another lock, a registration), and
// what must happen there when the hold ends. Set once, before anybody has the hold's handle.
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
  /// Any thread: the hold can be believed no longer than this; TimePoint::min(): no more.
  virtual TimePoint until() const noexcept = 0;
  /// Any thread: why the hold is lost when that moment has passed.
  virtual LossReason why() const noexcept { return LossReason::expired; }
  /// Any thread: the hold is held, suspect or lost from now on. Its mutex is locked.
  virtual void on_change(HandleState /*state*/, LossReason /*why*/) noexcept {}
  /// Any thread: the hold has been released by whoever had it. True: that is all, its claim is no
  /// matter of the hold's own, and `done` has been taken care of.
  virtual bool take_back(Hold& /*hold*/, Releaser::Done& /*done*/) { return false; }
  /// The loop: who has the lock by this hold, where that is another one; null: its own handle.
  virtual std::shared_ptr<Hold> holder() noexcept { return nullptr; }
  /// As LockHandle::broken_by(), of the other lock.
  virtual std::string broken_by() { return {}; }
  /// The loop: false if no handle exists for the lock (a cached claim that no caller uses).
  virtual bool has_user() noexcept { return true; }
  /// Any thread: its descriptor may be open elsewhere from now on.
  virtual void on_inherited() noexcept {}
  /// The loop: somebody else asks for the lock.
  virtual void on_contended() {}
  /// The loop, soon after the hold was lost, for whatever reason and whoever saw it first.
  virtual void on_lost(LossReason why) = 0;
  /// The loop, when who had the lost hold has let go of it: he believes nothing any more.
  virtual void on_let_go() {}
  /// The loop, when the hold is given back: what to call when that is done, instead of `done`.
  virtual Releaser::Done on_release(Releaser::Done done) { return done; }
};

}  // namespace dlock::core
