// SPDX-License-Identifier: Apache-2.0
//
// FakeHandle: makes a LockHandle with nothing behind it, and says what becomes of it: for code that
// is given a handle. No store, no thread, no time passes.
//
//   dlock::testing::FakeHandle grant({.name = "orders/42", .token = 7});
//   Writer writer(grant.handle());
//   grant.lose(dlock::LossReason::expired);
//   EXPECT_FALSE(writer.write("late"));
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "dlock/error.hpp"
#include "dlock/lock_handle.hpp"

namespace dlock::testing {

class FakeGrant;

/// What the handle says of itself.
struct FakeIdentity {
  std::string name = "fake";
  std::optional<std::uint64_t> token = 1;
  std::string store = "fake";
  Mode mode = Mode::exclusive;
};

/// The commands of one handle. A copy commands the same one; the handle may outlive them all.
/// Thread safety: all members from any thread.
///
/// Stop callbacks and state callbacks run inside the command that brings the change, on its thread,
/// before it returns; those that are added to a lock that is not held any more, inside on_state().
/// As ever release() waits for one that runs, unless it is called there.
class FakeHandle {
 public:
  explicit FakeHandle(FakeIdentity identity = {});

  /// Held. Once: throws std::logic_error the second time.
  LockHandle handle();

  /// Held becomes suspect. Nothing happens in any other state.
  void become_suspect();
  /// Suspect becomes held again.
  void become_held();
  /// Held or suspect becomes lost: stop requested, then callbacks called.
  void lose(LossReason reason = LossReason::removed);

  /// What the handle says is left to its deadline. Default: empty, there is no lease. Does not pass
  /// by itself.
  void set_remaining(std::optional<std::chrono::nanoseconds> remaining);
  /// What a release is told, if the lock was not lost before it; default: that all went well.
  void answer_release(error_code answer);

  /// Whether the handle was released or destroyed, also after a loss.
  bool is_released() const;
  /// What the release was told: lock_lost after a loss. Empty: it was not released.
  std::optional<error_code> release_result() const;
  /// Whether a Mutex has it.
  bool is_of_mutex() const;

 private:
  std::shared_ptr<FakeGrant> grant_;
};

}  // namespace dlock::testing
