// SPDX-License-Identifier: Apache-2.0
//
// Marks memory as unusable for AddressSanitizer, which then reports each access to it. Without
// AddressSanitizer the functions do nothing.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DLOCK_ADDRESS_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define DLOCK_ADDRESS_SANITIZER
#endif

#ifdef DLOCK_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace dlock::inline v0::detail {

inline void poison_memory([[maybe_unused]] void* memory,
                          [[maybe_unused]] std::size_t size) noexcept {
#ifdef DLOCK_ADDRESS_SANITIZER
  __asan_poison_memory_region(memory, size);
#endif
}

inline void unpoison_memory([[maybe_unused]] void* memory,
                            [[maybe_unused]] std::size_t size) noexcept {
#ifdef DLOCK_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(memory, size);
#endif
}

}  // namespace dlock::inline v0::detail
