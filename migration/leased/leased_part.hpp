// SPDX-License-Identifier: Apache-2.0
//
// LeasedPart: a lock in one store of a plan, below the hold that the user has. Its own hold is
// renewed as any other, and no user receives it.
#pragma once

#include <cstdint>
#include <memory>

#include "core/store/hold.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::core::migration {

/// Uses one part in each store.
class PartUser {
 public:
  virtual ~PartUser() = default;
  /// Any thread, with the mutex of the part's hold.
  virtual void on_part_change(bool in_source, HandleState state, LossReason why) noexcept = 0;
  /// The loop, soon after the part was lost.
  virtual void on_part_lost() {}
  /// Any thread: the hold that the user has; null: there is none.
  virtual std::shared_ptr<Hold> user() noexcept { return nullptr; }
};

/// Releases the lock when it is destroyed.
class LeasedPart {
 public:
  /// Takes ownership of `granted`, which no user has. Loop only.
  LeasedPart(LockHandle granted, bool in_source);
  ~LeasedPart() { release({}); }
  LeasedPart(const LeasedPart&) = delete;
  LeasedPart& operator=(const LeasedPart&) = delete;

  /// From now on it reports to `user` alone, or to no user if null. Any thread.
  void report_to(std::weak_ptr<PartUser> user);
  Hold& hold() const noexcept { return *hold_; }
  bool is_lost() const noexcept { return hold_->state() == HandleState::lost; }
  std::uint64_t token() const noexcept { return hold_->identity().token.value_or(0); }
  /// Once; any thread.
  void release(Releaser::Done done);

 private:
  class Watch;

  std::shared_ptr<Hold> hold_;
  std::shared_ptr<Watch> watch_;
};
using PartPtr = std::shared_ptr<LeasedPart>;

}  // namespace dlock::core::migration
