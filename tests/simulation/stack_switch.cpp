// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/stack_switch.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace dlock::simulation {

StackSwitch::StackSwitch(void* top, std::size_t size)
    : bottom_(static_cast<char*>(top) - size), size_(size) {
#ifdef __SANITIZE_THREAD__
  fiber_ = __tsan_create_fiber(0);
#endif
}

StackSwitch::~StackSwitch() {
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(fiber_);
#endif
}

void StackSwitch::enter() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&world_fake_, bottom_, size_);
#endif
#ifdef __SANITIZE_THREAD__
  world_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber_, 0);
#endif
}

void StackSwitch::left() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(world_fake_, nullptr, nullptr);
#endif
}

void StackSwitch::entered() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fiber_fake_, &world_bottom_, &world_size_);
#endif
}

void StackSwitch::leave() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&fiber_fake_, world_bottom_, world_size_);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(world_, 0);
#endif
}

void StackSwitch::leave_for_good() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(nullptr, world_bottom_, world_size_);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(world_, 0);
#endif
}

}  // namespace dlock::simulation
