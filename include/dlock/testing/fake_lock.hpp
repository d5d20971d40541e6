// SPDX-License-Identifier: Apache-2.0
//
// FakeLock: a DistributedLock with nothing behind it, for code that is given a lock. Each acquire
// is granted or refused at once, by what the test has said: no store, no thread, no time passes.
// Where waiting matters, or two that want the same lock, <dlock/testing/store.hpp> is the thing.
//
//   auto lock = std::make_shared<dlock::testing::FakeLock>("orders/42");
//   lock->refuse(dlock::errc::unavailable, "no route to host");
//   EXPECT_EQ(ship(*lock), Outcome::try_later);
#pragma once

#include "dlock/detail/language.hpp"  // first: it ends here without C++20

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dlock/distributed_lock.hpp"
#include "dlock/testing/fake_handle.hpp"

namespace dlock::testing {

/// Grants each acquire, with tokens 1, 2, 3..., whoever has it already.
/// Thread safety: all members from any thread. Handlers of async_acquire() without an executor run
/// on a thread of this lock's.
class FakeLock final : public DistributedLock {
 public:
  explicit FakeLock(std::string name = "fake", std::string store = "fake");

  const std::string& name() const noexcept override { return name_; }
  const std::string& store() const noexcept override { return store_; }
  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override;

  /// The next acquire that nothing was said of ends with this; timed_out: somebody else has it.
  /// `text` is in its diagnostics.
  void refuse(errc error, std::string text = {});
  /// The next grant has this token; those after it go on from there. Empty: this one has none.
  void next_token(std::optional<std::uint64_t> token);

  /// The commands of what was granted, first one first.
  std::vector<FakeHandle> grants() const;
  /// Of the last one. Throws std::logic_error if there is none.
  FakeHandle last_grant() const;
  /// How each acquire was asked for, granted or not; without its diagnostics.
  std::vector<AcquireOptions> acquires() const;

 private:
  struct Refusal {
    error_code error;
    std::string text;
  };

  const std::string name_;
  const std::string store_;
  mutable std::mutex mutex_;
  std::deque<Refusal> refusals_;
  std::optional<std::optional<std::uint64_t>> next_token_;
  std::uint64_t last_token_ = 0;
  std::vector<FakeHandle> grants_;
  std::vector<AcquireOptions> acquires_;
};

}  // namespace dlock::testing
