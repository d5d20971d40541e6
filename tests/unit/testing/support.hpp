// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the store of users' tests share.
#pragma once

#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "dlock/lock_manager.hpp"
#include "dlock/testing/store.hpp"
#include "testkit/await.hpp"

namespace dlock::tests {

using Told = std::vector<std::pair<HandleState, LossReason>>;

/// Quick to be lost, and to be refused.
inline constexpr testing::Times kShort{.lease = std::chrono::seconds(1),
                                       .patience = std::chrono::milliseconds(100)};

inline OpenOptions quiet() {
  OpenOptions options;
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

template <class Call>
std::optional<LockError> error_of(Call call) {
  try {
    call();
    return std::nullopt;
  } catch (const LockError& error) {
    return error;
  }
}

/// What a handle has told so far.
class Diary {
 public:
  explicit Diary(LockHandle& handle) {
    handle.on_state([this](HandleState state, LossReason reason) {
      const std::lock_guard lock(mutex_);
      told_.emplace_back(state, reason);
    });
  }
  bool reaches(std::size_t count) const {
    return testkit::eventually(testkit::patience(), [&] { return told().size() >= count; });
  }
  Told told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  mutable std::mutex mutex_;
  Told told_;
};

}  // namespace dlock::tests
