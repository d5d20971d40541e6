// SPDX-License-Identifier: Apache-2.0
//
// Wakes the main thread's poll() from dlock's threads; and that poll().
#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>

namespace dlock::cli {

class Wake {
 public:
  Wake();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  /// Any thread.
  void notify() noexcept;
  void clear() noexcept;
  int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// Returns when one of the descriptors is readable (or at its end), or the time is over. Negative
/// descriptors are left out. Returns also when no process reads `written` any more.
void wait_for(std::initializer_list<int> descriptors,
              std::optional<std::chrono::nanoseconds> timeout, int written = -1) noexcept;

}  // namespace dlock::cli
