// SPDX-License-Identifier: Apache-2.0
//
// Tells AddressSanitizer that the world's thread goes over to a fiber's stack and back; nothing
// without it. Boost.Context does so only in builds of its own.
#pragma once

#include <cstddef>

namespace dlock::simulation {

class StackSwitch {
 public:
  /// `top`: of a stack that grows downwards.
  StackSwitch(void* top, std::size_t size);
  StackSwitch(const StackSwitch&) = delete;
  StackSwitch& operator=(const StackSwitch&) = delete;

  // On the world's stack: before going over, and when it is back.
  void enter();
  void left();
  // On the fiber's: when it goes on, before it goes back, and before it does so for the last time.
  void entered();
  void leave();
  void leave_for_good();

 private:
  void* bottom_;
  std::size_t size_;
  const void* world_bottom_ = nullptr;
  std::size_t world_size_ = 0;
  void* world_fake_ = nullptr;  ///< its shadow of what is on that stack
  void* fiber_fake_ = nullptr;
};

}  // namespace dlock::simulation
