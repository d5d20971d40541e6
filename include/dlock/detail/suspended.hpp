// SPDX-License-Identifier: Apache-2.0
//
// A coroutine that is suspended, kept until something resumes it: Asio's handler, whose type has no
// name, in place. Keeping it allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace dlock::inline v0::detail {

/// Resumed, or dropped, once; dropped by its destructor.
template <class... Results>
class Suspended {
 public:
  Suspended() = default;
  ~Suspended() { drop(); }
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;

  explicit operator bool() const noexcept { return end_ != nullptr; }

  template <class Handler>
  void keep(Handler handler) noexcept {
    static_assert(sizeof(Handler) <= kRoom);
    static_assert(alignof(Handler) <= alignof(void*));
    static_assert(std::is_nothrow_move_constructible_v<Handler>);
    new (place_.data()) Handler(std::move(handler));
    end_ = &end<Handler>;
  }
  /// May throw what the coroutine's end throws. This may be gone when it returns.
  void resume(Results... results) {
    std::exchange(end_, nullptr)(place_.data(), true, std::move(results)...);
  }
  void drop() noexcept {
    if (end_ != nullptr) std::exchange(end_, nullptr)(place_.data(), false, Results{}...);
  }

 private:
  template <class Handler>
  static void end(std::byte* place, bool is_resumed, Results... results) {
    auto* const kept = std::launder(reinterpret_cast<Handler*>(place));
    // The handler may own the memory it is kept in: move it out before it is resumed or dropped.
    auto handler = std::move(*kept);
    std::destroy_at(kept);
    if (is_resumed) std::move(handler)(std::move(results)...);
  }

  static constexpr std::size_t kRoom = 3 * sizeof(void*);
  alignas(void*) std::array<std::byte, kRoom> place_;
  void (*end_)(std::byte* place, bool is_resumed, Results... results) = nullptr;
};

}  // namespace dlock::inline v0::detail
