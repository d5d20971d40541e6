// SPDX-License-Identifier: Apache-2.0
//
// One object of a kind per process, for threads that outlive static objects: never destroyed. A
// fork()ed child has another one, since it has none of the threads, and mutexes as they were.
#pragma once

#include <atomic>

#include "dlock/spi/fork.hpp"

namespace dlock::core {

/// Any thread.
template <class T>
T& of_process() {
  struct Owned {
    unsigned generation;
    T object{};
    Owned* parents;  ///< reachable, for leak checkers
  };
  static std::atomic<Owned*> present{nullptr};
  auto* seen = present.load(std::memory_order_acquire);
  while (seen == nullptr || seen->generation != fork_generation()) {
    auto* const made = new Owned{fork_generation(), {}, seen};
    if (present.compare_exchange_strong(seen, made, std::memory_order_acq_rel)) return made->object;
    delete made;
  }
  return seen->object;
}

}  // namespace dlock::core
