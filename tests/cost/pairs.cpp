// SPDX-License-Identifier: Apache-2.0
//
// What ./scripts/cost counts: one blocking client that locks and unlocks, again and again.
//
//   dlock-pairs URL PAIRS
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "dlock/dlock.hpp"

namespace {

/// So that connections, caches and tables are as they are after that.
constexpr int kWarmUp = 100;

void run(const std::string& url, int pairs) {
  auto locks = dlock::LockManager::open(url);
  const auto lock = locks.lock("cost");
  for (int i = 0; i < kWarmUp + pairs; ++i) {
    auto held = lock->acquire();
    if (const auto error = held.release()) throw std::runtime_error(error.message());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: dlock-pairs URL PAIRS\n";
    return 64;
  }
  try {
    run(argv[1], std::atoi(argv[2]));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "dlock-pairs: " << error.what() << '\n';
    return 1;
  }
}
