// SPDX-License-Identifier: Apache-2.0
//
// StateLog: what the holders of locks were told, with the moments, for whoever waits for it. The
// handles may outlive it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <memory>
#include <mutex>
#include <vector>

#include "dlock/clock.hpp"
#include "dlock/lock_handle.hpp"
#include "testkit/await.hpp"

namespace dlock::testkit {

class StateLog {
 public:
  struct Entry {
    HandleState state;
    LossReason reason;
    TimePoint when;
  };

  StateLog() = default;
  explicit StateLog(LockHandle& handle) { record(handle); }

  void record(LockHandle& handle) {
    handle.on_state([shared = shared_](HandleState state, LossReason reason) {
      const std::lock_guard lock(shared->mutex);
      shared->entries.push_back({state, reason, BoottimeClock::now()});
      shared->changed.notify_all();
    });
  }

  /// Somebody has been told that, before or now.
  bool wait_for(HandleState state, Deadline deadline = patience()) {
    return wait([&] { return !of(state).empty(); }, deadline);
  }
  /// It is the last that was told.
  bool wait_for_last(HandleState state, Deadline deadline = patience()) {
    const auto& all = shared_->entries;
    return wait([&] { return !all.empty() && all.back().state == state; }, deadline);
  }

  std::vector<Entry> entries() {
    const std::lock_guard lock(shared_->mutex);
    return shared_->entries;
  }
  std::vector<Entry> entries_of(HandleState state) {
    const std::lock_guard lock(shared_->mutex);
    return of(state);
  }
  std::size_t count(HandleState state) { return entries_of(state).size(); }
  std::vector<HandleState> states() {
    std::vector<HandleState> all;
    for (const auto& entry : entries()) all.push_back(entry.state);
    return all;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Entry> entries;
  };

  std::vector<Entry> of(HandleState state) const {
    std::vector<Entry> some;
    std::copy_if(shared_->entries.begin(), shared_->entries.end(), std::back_inserter(some),
                 [&](const Entry& entry) { return entry.state == state; });
    return some;
  }
  template <class Predicate>
  bool wait(Predicate done, Deadline deadline) {
    std::unique_lock lock(shared_->mutex);
    return shared_->changed.wait_until(lock, deadline, done);
  }

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace dlock::testkit
