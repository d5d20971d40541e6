// SPDX-License-Identifier: Apache-2.0
//
// The semaphores of a `memory://name`: a record for each acquisition, in the order in which they
// came. How many permits are free is counted from the records.
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
    Failure refused;  ///< nothing of it is left then
  };

  /// Joins the line, or asks how it stands; `wake` is called when it may have its permits, or the
  /// limit has changed. Without `queue`: leaves nothing behind if it cannot have them now.
  Grant claim(const ClaimRequest& request, TimePoint now, Wake wake);
  /// Whether it was granted to the owner, who has it still.
  bool holds(const std::string& name, const std::string& owner_id) const;
  /// False: there is no record of that acquisition.
  bool release(const std::string& name, const std::string& owner_id);
  /// Takes the permits from the holder with that token, or with `mark` marks them, and wakes the
  /// holder. Empty: done; else any holder's token, 0 if there is none.
  std::optional<std::uint64_t> evict(const std::string& name, std::uint64_t token,
                                     const Break* mark = nullptr);
  /// As SharedStore::mark_of().
  std::optional<Break> mark_of(const std::string& name, const std::string& owner_id) const;
  /// Of those whose limit is known.
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
  /// Why the claim cannot be here.
  static Failure refusal(const One& semaphore, const ClaimRequest& request);
  static void wake_next(const One& semaphore, std::vector<Wake>& wakes);
  Grant claim_locked(const ClaimRequest& request, TimePoint now, Wake wake,
                     std::vector<Wake>& wakes);

  mutable std::mutex mutex_;
  std::map<std::string, One> semaphores_;
};

}  // namespace dlock::memory
