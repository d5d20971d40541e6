// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/stack_switch.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace dlock::simulation {

StackSwitch::StackSwitch(void* top, std::size_t size)
    : bottom_(static_cast<char*>(top) - size), size_(size) {}

void StackSwitch::enter() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&world_fake_, bottom_, size_);
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
}

void StackSwitch::leave_for_good() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(nullptr, world_bottom_, world_size_);
#endif
}

}  // namespace dlock::simulation
