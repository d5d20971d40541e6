// SPDX-License-Identifier: Apache-2.0
//
// One object per thread, which ends with the thread. Not a thread_local with a destructor: glibc
// ends the program if the memory to register one is used up.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <new>

namespace dlock::core {

/// One T a thread. Its end is not that of exit(): what the main thread has stays then.
template <class T>
class OfThread {
 public:
  /// Returns the calling thread's. Null: it is ending, or the process has no pthread key to spare.
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
    return std::launder(reinterpret_cast<T*>(place));  // NOLINT: raw memory that contains one
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
