// SPDX-License-Identifier: Apache-2.0
//
// FakeLock: a DistributedLock without a store, for code that receives a lock. Each acquire is
// granted or refused at once, as the test has set it: no store, no thread, no time passes. Use
// <dlock/testing/store.hpp> where waiting matters, or two clients that want the same lock.
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

/// Grants each acquire, with tokens 1, 2, 3..., even if it is granted already. Thread safety: all
/// members from any thread. Handlers of async_acquire() without an executor run on a thread of this
/// lock's.
class FakeLock final : public DistributedLock {
 public:
  explicit FakeLock(std::string name = "fake", std::string store = "fake");

  const std::string& name() const noexcept override { return name_; }
  const std::string& store() const noexcept override { return store_; }
  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override;

  /// Queues a refusal: the next acquire without one ends with this error. timed_out: another client
  /// holds the lock. `text` is in its diagnostics.
  void refuse(errc error, std::string text = {});
  /// Sets the token of the next grant; later tokens continue from there. Empty: this grant has
  /// none.
  void next_token(std::optional<std::uint64_t> token);

  /// Returns a FakeHandle for each grant, the first one first.
  std::vector<FakeHandle> grants() const;
  /// Returns the FakeHandle of the last grant. Throws std::logic_error without a grant.
  FakeHandle last_grant() const;
  /// Returns the options of each acquire, granted or not; without its diagnostics.
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
