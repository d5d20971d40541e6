// SPDX-License-Identifier: Apache-2.0
//
// What a lock costs that stays with its process (`cache`), and what somebody else who asks for it
// waits for that.
//
//   dlock-cache URL ROUNDS
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "dlock/dlock.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Times = std::vector<std::int64_t>;

template <class Step>
std::int64_t ns_of(Step step) {
  const auto before = Clock::now();
  step();
  return std::chrono::nanoseconds(Clock::now() - before).count();
}

void use(dlock::DistributedLock& lock) {
  auto held = lock.acquire();
  if (const auto error = held.release()) throw std::runtime_error(error.message());
}

void print(const char* what, Times times) {
  std::sort(times.begin(), times.end());
  std::cout << what << ": median " << times[times.size() / 2] << " ns, 99 of 100 within "
            << times[times.size() * 99 / 100] << " ns\n";
}

/// Of a lock that nobody uses: free, or with `owner` still.
void measure_wait(const char* what, dlock::LockManager& owner, dlock::LockManager& other,
                  int rounds) {
  Times times;
  for (int i = 0; i < rounds; ++i) {
    use(*owner.lock("asked"));
    const auto lock = other.lock("asked");
    dlock::LockHandle held;
    times.push_back(ns_of([&] { held = lock->acquire(); }));
    if (const auto error = held.release()) throw std::runtime_error(error.message());
  }
  print(what, std::move(times));
}

void run(const std::string& url, int rounds) {
  auto cached =
      dlock::LockManager::open(url + (url.find('?') == std::string::npos ? "?" : "&") + "cache=1h");
  auto plain = dlock::LockManager::open(url);
  auto other = dlock::LockManager::open(url);
  const auto lock = cached.lock("again");
  use(*lock);
  constexpr int kPairs = 1000;
  Times pairs;
  for (int i = 0; i < rounds; ++i) {
    pairs.push_back(ns_of([&] {
                      for (int pair = 0; pair < kPairs; ++pair) use(*lock);
                    }) /
                    kPairs);
  }
  print("taken again and released", std::move(pairs));
  use(*other.lock("asked"));
  measure_wait("another's acquire of a free lock", plain, other, rounds);
  measure_wait("another's acquire of a cached lock", cached, other, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: dlock-cache URL ROUNDS\n";
    return 64;
  }
  try {
    run(argv[1], std::max(1, std::atoi(argv[2])));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "dlock-cache: " << error.what() << '\n';
    return 1;
  }
}
