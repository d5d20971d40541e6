// SPDX-License-Identifier: Apache-2.0
//
// A move-only std::function. std::move_only_function is C++23, and Boost 1.81 has no such type
// outside Asio, which the public headers keep out.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "dlock/detail/recycled.hpp"

namespace dlock::inline v0::detail {

template <class Signature>
class UniqueFunction;
template <class Signature>
class FunctionQueue;

/// Holds any callable, also a move-only one. Empty when default-constructed or moved from.
/// Calling an empty one is undefined. Distinct objects: thread-safe; shared objects: not.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as std::function

  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, F&, Args...>)
      UniqueFunction(F f)  // NOLINT(google-explicit-constructor): as std::function
      : callable_(std::make_unique<Holder<F>>(std::move(f))) {}

  R operator()(Args... args) { return callable_->call(std::forward<Args>(args)...); }
  explicit operator bool() const noexcept { return callable_ != nullptr; }

 private:
  friend class FunctionQueue<R(Args...)>;

  struct Callable {
    virtual ~Callable() = default;
    virtual R call(Args... args) = 0;
    std::unique_ptr<Callable> next;  ///< in a FunctionQueue
  };
  template <class F>
  struct Holder final : Callable {
    explicit Holder(F function) : f(std::move(function)) {}
    R call(Args... args) override { return f(std::forward<Args>(args)...); }
    static void* operator new(std::size_t size) { return take_memory(size); }
    static void operator delete(void* memory, std::size_t size) noexcept {
      give_memory(memory, size);
    }
    static void* operator new(std::size_t size, std::align_val_t alignment) {
      return ::operator new(size, alignment);
    }
    static void operator delete(void* memory, std::align_val_t alignment) noexcept {
      ::operator delete(memory, alignment);
    }
    F f;
  };
  std::unique_ptr<Callable> callable_;
};

/// First in, first out. Allocates nothing: each function has its place in itself.
template <class R, class... Args>
class FunctionQueue<R(Args...)> {
 public:
  FunctionQueue() = default;
  ~FunctionQueue() {
    while (head_) pop();
  }
  FunctionQueue(FunctionQueue&& other) noexcept
      : head_(std::move(other.head_)), tail_(std::exchange(other.tail_, nullptr)) {}
  FunctionQueue& operator=(FunctionQueue&&) = delete;

  bool empty() const noexcept { return head_ == nullptr; }
  void push(UniqueFunction<R(Args...)> function) noexcept {
    auto* const last = function.callable_.get();
    (head_ ? tail_->next : head_) = std::move(function.callable_);
    tail_ = last;
  }
  /// Before all that is in it.
  void push_front(FunctionQueue earlier) noexcept {
    if (earlier.empty()) return;
    if (empty()) tail_ = earlier.tail_;
    earlier.tail_->next = std::move(head_);
    head_ = std::move(earlier.head_);
  }
  /// An empty function if there is none.
  UniqueFunction<R(Args...)> pop() noexcept {
    UniqueFunction<R(Args...)> first;
    first.callable_ = std::move(head_);
    if (first.callable_) head_ = std::move(first.callable_->next);
    return first;
  }

 private:
  using Callable = typename UniqueFunction<R(Args...)>::Callable;
  std::unique_ptr<Callable> head_;
  Callable* tail_ = nullptr;
};

}  // namespace dlock::inline v0::detail
