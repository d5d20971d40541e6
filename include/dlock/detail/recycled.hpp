// SPDX-License-Identifier: Apache-2.0
//
// Memory for objects that live for one call. Each thread keeps the blocks that it frees, up to a
// bound, and reuses them instead of calling malloc(). Free blocks are poisoned under
// AddressSanitizer.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace dlock::inline v0::detail {

/// Upper bound of the bytes that a thread keeps.
inline constexpr std::size_t kMostRecycled = std::size_t{256} * 1024;

/// Returns memory that is aligned for every type without extended alignment.
/// Throws std::bad_alloc.
/// Thread safety: any thread.
void* take_memory(std::size_t size);
/// Frees `memory`; `size` is the argument of its take_memory().
/// Thread safety: any thread, not only the one that called take_memory().
void give_memory(void* memory, std::size_t size) noexcept;
/// Returns the bytes that the calling thread keeps.
std::size_t kept_memory() noexcept;

/// Allocator over take_memory() and give_memory().
template <class T>
struct Recycled {
  using value_type = T;
  Recycled() noexcept = default;
  template <class U>
  Recycled(const Recycled<U>&) noexcept {}  // NOLINT(google-explicit-constructor): as allocators do

  // NOLINTBEGIN(bugprone-sizeof-expression): T may well be a pointer
  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(take_memory(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { give_memory(memory, count * sizeof(T)); }
  // NOLINTEND(bugprone-sizeof-expression)
  template <class U>
  bool operator==(const Recycled<U>&) const noexcept {
    return true;
  }
};

template <class T, class... Args>
std::shared_ptr<T> make_recycled(Args&&... args) {
  return std::allocate_shared<T>(Recycled<T>(), std::forward<Args>(args)...);
}

}  // namespace dlock::inline v0::detail
