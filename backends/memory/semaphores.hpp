// SPDX-License-Identifier: Apache-2.0
//
// The semaphores of a `memory://name`: a record for each acquisition, in the order of arrival. The
// number of free permits is counted from the records.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/spi/answers.hpp"
#include "dlock/spi/claim.hpp"

namespace dlock::memory {

/// Thread safety: all members from any thread. Wake-ups are called without the mutex.
class Semaphores {
 public:
  using Wake = std::function<void()>;
  struct Grant {
    bool granted = false;
    std::uint64_t token = 0;
    Failure refused;  ///< then no record is left
  };

  /// Joins the line, or returns the claim's state; `wake` is called when it may have its permits,
  /// or the limit has changed. Without `queue`: leaves no record behind if it cannot have them now.
  Grant claim(const ClaimRequest& request, TimePoint now, Wake wake);
  /// Returns whether the owner was granted permits and still holds them.
  bool holds(const std::string& name, const std::string& owner_id) const;
  /// Returns false if that acquisition has no record.
  bool release(const std::string& name, const std::string& owner_id);
  /// Removes the permits of the holder with that token, or with `mark` marks them, and wakes the
  /// holder. Empty: done; otherwise any holder's token, 0 without a holder.
  std::optional<std::uint64_t> evict(const std::string& name, std::uint64_t token,
                                     const Break* mark = nullptr);
  /// As SharedStore::mark_of().
  std::optional<Break> mark_of(const std::string& name, const std::string& owner_id) const;
  /// Returns the semaphores whose limit is known.
  std::vector<std::string> names() const;
  SemaphoreStatus inspect(const std::string& name, TimePoint now) const;
  void set_limit(const std::string& name, std::uint32_t limit);

 private:
  struct Entry {
    Owner owner;
    std::uint32_t permits = 0;
    std::uint64_t token = 0;  ///< 0 while waiting
    TimePoint since{};
    Wake wake;
    std::optional<Break> broken{};
  };
  using Entries = std::deque<Entry>;
  struct One {
    std::uint32_t limit = 0;  ///< 0: not known yet
    std::uint64_t last_token = 0;
    Entries entries;
  };
  static std::uint64_t held(const Entries& entries);
  static bool may_have(const One& semaphore, Entries::const_iterator entry);
  /// Returns why the claim is not possible. Clear: it is.
  static Failure refusal(const One& semaphore, const ClaimRequest& request);
  static void wake_next(const One& semaphore, std::vector<Wake>& wakes);
  Grant claim_locked(const ClaimRequest& request, TimePoint now, Wake wake,
                     std::vector<Wake>& wakes);

  mutable std::mutex mutex_;
  std::map<std::string, One> semaphores_;
};

}  // namespace dlock::memory
