// SPDX-License-Identifier: Apache-2.0
//
// Threads that want one lock again and again, and see for themselves whether it lets two in.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>

#include "dlock/distributed_lock.hpp"

namespace dlock::testkit {

/// Who is inside, by what the holders themselves believe.
struct Guarded {
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<std::uint64_t> last_token{0};
  std::atomic<int> stale_tokens{0};
  std::atomic<int> grants{0};
};

/// Takes and gives the lock, and checks at each end that nobody else was in between; a holder that
/// may have lost it by then says nothing.
inline void work_under_a_lock(const std::shared_ptr<DistributedLock>& lock, Guarded& guarded,
                              const std::atomic<bool>& stop, unsigned seed,
                              std::chrono::milliseconds longest_wait) {
  std::mt19937 dice(seed);
  std::uniform_int_distribution<std::chrono::milliseconds::rep> wait(0, longest_wait.count());
  while (!stop) {
    error_code ec;
    auto held = lock->try_acquire({.wait = std::chrono::milliseconds(wait(dice))}, {}, ec);
    if (!held) continue;
    ++guarded.grants;
    const auto token = held->token().value_or(0);
    auto last = guarded.last_token.load();
    while (last < token && !guarded.last_token.compare_exchange_weak(last, token)) {
    }
    if (last >= token && held->state() == HandleState::held) ++guarded.stale_tokens;
    if (++guarded.inside != 1 && held->state() == HandleState::held) ++guarded.overlaps;
    std::this_thread::sleep_for(std::chrono::microseconds(dice() % 2000));
    --guarded.inside;
    held->release();
  }
}

}  // namespace dlock::testkit
