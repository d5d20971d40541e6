// SPDX-License-Identifier: Apache-2.0
//
// What came of many asynchronous acquires.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "dlock/async.hpp"
#include "testkit/await.hpp"

namespace dlock::testkit {

/// Outlives them all.
class Acquired {
 public:
  Acquired() = default;
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

  /// For one acquire: what it comes to.
  auto one() {
    return [this](error_code ec, LockHandle got) {
      const std::lock_guard lock(mutex_);
      ++ended_;
      if (ec) ++failed_;
      if (!ec) held_.push_back(std::move(got));
    };
  }

  int ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  int failed() {
    const std::lock_guard lock(mutex_);
    return failed_;
  }
  /// False: some have not ended in time.
  bool all(int count) {
    return eventually(patience(), [&] { return ended() == count; });
  }
  /// Once all have ended.
  std::vector<LockHandle>& held() { return held_; }

 private:
  std::mutex mutex_;
  int ended_ = 0;
  int failed_ = 0;
  std::vector<LockHandle> held_;
};

}  // namespace dlock::testkit
