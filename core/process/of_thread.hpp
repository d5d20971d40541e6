// SPDX-License-Identifier: Apache-2.0
//
// What a thread has for itself, and what ends with it. Not a thread_local with a destructor: where
// there is no memory to note one, glibc ends the program.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <new>

namespace dlock::core {

/// One T a thread. Its end is not that of exit(): what the main thread has stays then.
template <class T>
class OfThread {
 public:
  /// Of the calling thread. Null: it is ending, or the process has no pthread key to spare.
  static T* here() noexcept {
    if (state == State::open) return mine();
    if (state == State::closed || !ends.made) return nullptr;
    if (::pthread_setspecific(ends.key, place) != 0) return nullptr;
    new (place) T();
    state = State::open;
    return mine();
  }

 private:
  enum class State : std::uint8_t { untouched, open, closed };
  struct Ends {
    pthread_key_t key{};
    const bool made = ::pthread_key_create(&key, &end) == 0;
  };

  static T* mine() noexcept {
    return std::launder(reinterpret_cast<T*>(place));  // NOLINT: of raw memory that has one
  }
  static void end(void*) noexcept {
    state = State::closed;
    mine()->~T();
  }

  static inline const Ends ends;
  alignas(T) static inline constinit thread_local unsigned char place[sizeof(T)]{};
  static inline constinit thread_local State state = State::untouched;
};

}  // namespace dlock::core
