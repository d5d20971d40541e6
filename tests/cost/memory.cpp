// SPDX-License-Identifier: Apache-2.0
//
// What ./scripts/cost counts: the memory of locks that are held. Prints the bytes of each.
//
//   dlock-memory URL COUNT
#include <malloc.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "dlock/dlock.hpp"

namespace {

/// What malloc() has given and not got back.
std::size_t allocated() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::size_t of_each_held(dlock::LockManager& locks, int count) {
  std::vector<dlock::LockHandle> held;
  held.reserve(static_cast<std::size_t>(count));
  const auto hold = [&](int number) {
    held.push_back(locks.lock("cost/held/" + std::to_string(number))->acquire());
  };
  hold(0);
  const auto before = allocated();
  for (int i = 1; i < count; ++i) hold(i);
  return (allocated() - before) / static_cast<std::size_t>(count - 1);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc == 3 ? std::atoi(argv[2]) : 0;
  if (count < 2) {
    std::cerr << "usage: dlock-memory URL COUNT (2 or more)\n";
    return 64;
  }
  try {
    auto locks = dlock::LockManager::open(argv[1]);
    std::cout << of_each_held(locks, count) << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "dlock-memory: " << error.what() << '\n';
    return 1;
  }
}
