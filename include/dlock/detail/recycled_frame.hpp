// SPDX-License-Identifier: Apache-2.0
//
// Coroutines that come with each acquire and release, and have their frames in recycled memory:
// Asio's own recycling lasts no longer than one handler of its io_context. Chosen class by class,
// where the coroutines are defined:
//
//   template <>
//   inline constexpr bool dlock::detail::kRecyclesFrames<Acquisition> = true;
#pragma once

#include <boost/asio/awaitable.hpp>
#include <coroutine>
#include <cstddef>

#include "dlock/detail/recycled.hpp"

namespace dlock::inline v0::detail {

/// The coroutines that are members of `T`.
template <class T>
inline constexpr bool kRecyclesFrames = false;

/// Asio's promise, but for where its frame lies.
template <class Awaitable>
struct RecycledPromise : std::coroutine_traits<Awaitable>::promise_type {
  using Asios = typename std::coroutine_traits<Awaitable>::promise_type;
  using Executor = typename Awaitable::executor_type;

  static void* operator new(std::size_t size) { return take_memory(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { give_memory(frame, size); }

  using Asios::await_transform;
  // It wants to be awaited by a coroutine of Asio's own type; the frame is one.
  template <class T>
  auto await_transform(boost::asio::awaitable<T, Executor> awaited) const {
    struct Awaiter {
      boost::asio::awaitable<T, Executor> awaited;

      bool await_ready() const noexcept { return awaited.await_ready(); }
      void await_suspend(std::coroutine_handle<RecycledPromise> waiting) {
        awaited.await_suspend(std::coroutine_handle<Asios>::from_address(waiting.address()));
      }
      T await_resume() { return awaited.await_resume(); }
    };
    return Awaiter{Asios::await_transform(std::move(awaited))};
  }
};

}  // namespace dlock::inline v0::detail

template <class T, class Executor, class Owner, class... Args>
requires dlock::detail::kRecyclesFrames<Owner>
struct std::coroutine_traits<boost::asio::awaitable<T, Executor>, Owner&, Args...> {
  using promise_type = dlock::detail::RecycledPromise<boost::asio::awaitable<T, Executor>>;
  // Asio finds the frame by its own promise's place.
  // NOLINTNEXTLINE(misc-redundant-expression): two types, of which one is the other's base
  static_assert(sizeof(promise_type) == sizeof(typename promise_type::Asios) &&
                alignof(promise_type) == alignof(typename promise_type::Asios));
};
