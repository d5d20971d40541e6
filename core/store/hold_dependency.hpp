// SPDX-License-Identifier: Apache-2.0
//
// HoldDependency: what a hold rests on beside its own claim (another lock, a registration), and
// what must happen there when the hold ends. Set once, before anybody has the hold's handle.
#pragma once

#include "core/store/releaser.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::core {

class HoldDependency {
 public:
  virtual ~HoldDependency() = default;
  /// Any thread: the hold can be believed no longer than this; TimePoint::min(): no more.
  virtual TimePoint until() const noexcept = 0;
  /// The loop, soon after the hold was lost, for whatever reason and whoever saw it first.
  virtual void on_lost(LossReason why) = 0;
  /// The loop, when who had the lost hold has let go of it: he believes nothing any more.
  virtual void on_let_go() {}
  /// The loop, when the hold is given back: what to call when that is done, instead of `done`.
  virtual Releaser::Done on_release(Releaser::Done done) { return done; }
};

}  // namespace dlock::core
