// SPDX-License-Identifier: Apache-2.0
//
// FakeHandle: makes a LockHandle without a store, and controls its state: for code that receives a
// handle. No store, no thread, no time passes.
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

/// The answers of the handle about itself.
struct FakeIdentity {
  std::string name = "fake";
  std::optional<std::uint64_t> token = 1;
  std::string store = "fake";
  Mode mode = Mode::exclusive;
};

/// Controls one handle. A copy controls the same one; the handle may outlive them all. Thread
/// safety: all members from any thread.
///
/// Stop callbacks and state callbacks run inside the command that makes the change, on its thread,
/// before it returns. Callbacks that are added after the lock is lost run inside on_state().
/// release() waits for a callback that runs, unless it is called there.
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

  /// Sets the time that the handle reports until its deadline. Default: empty, without a lease. It
  /// does not elapse.
  void set_remaining(std::optional<std::chrono::nanoseconds> remaining);
  /// Sets the result of a release of a lock that was not lost before. Default: success.
  void answer_release(error_code answer);

  /// Whether the handle was released or destroyed, also after a loss.
  bool is_released() const;
  /// Returns the result of the release: lock_lost after a loss. Empty: it was not released.
  std::optional<error_code> release_result() const;
  /// Whether a Mutex owns it.
  bool is_of_mutex() const;

 private:
  std::shared_ptr<FakeGrant> grant_;
};

}  // namespace dlock::testing
