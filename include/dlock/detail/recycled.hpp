// SPDX-License-Identifier: Apache-2.0
//
// Memory for what lives as long as one call: given back to the thread that ends it, and taken from
// there by the next, instead of from malloc() each time. A thread keeps little of it, and none when
// it ends; what it gives back and does not take goes to threads that take and are not given. Under
// a sanitizer all comes from operator new, so that it sees each use.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace dlock::inline v0::detail {

/// Aligned for every type that is not over-aligned. Throws std::bad_alloc. Any thread.
void* take_memory(std::size_t size);
/// `size` as it was taken. Any thread, also another one.
void give_memory(void* memory, std::size_t size) noexcept;

/// Allocates from there.
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
