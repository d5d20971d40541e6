// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world.hpp"

#include "tests/simulation/process.hpp"

namespace dlock::simulation {

// splitmix64 (Steele, Lea, Flood 2014): one word of state, so that a seed is a number to type.
std::uint64_t World::random() noexcept {
  state_ += 0x9E3779B97F4A7C15U;
  auto z = state_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

bool World::chance(double probability) noexcept {
  return static_cast<double>(random() >> 11U) < probability * 9007199254740992.0;
}

Duration World::between(Duration from, Duration to) noexcept {
  if (to <= from) return from;
  return from + Duration(static_cast<std::int64_t>(
                    below(static_cast<std::uint64_t>((to - from).count()) + 1)));
}

void World::write_trace(const std::string& line) {
  const auto us = std::chrono::duration_cast<microseconds>(now_.time_since_epoch()).count();
  trace_ += fmt::format("{:>14.6f}  {}\n", static_cast<double>(us) / 1e6 - 3600.0, line);
}

void World::run_processes() {
  while (!runnable_.empty()) {
    auto* process = runnable_.front();
    runnable_.pop_front();
    process->run_ready();
    if (observer_) observer_(*process);
  }
}

void World::run_until(TimePoint end) {
  run_processes();
  while (events_.next() <= end) {
    now_ = std::max(now_, events_.next());
    while (auto job = events_.take_due(now_)) {
      job();
      run_processes();
    }
  }
  now_ = std::max(now_, end);
}

}  // namespace dlock::simulation
