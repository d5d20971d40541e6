// SPDX-License-Identifier: Apache-2.0
//
// A program that counts under a lock and does not know where the lock lives: its configuration
// says so. It reads that anew for each line of its input.
//
//   swap-program CONFIG COUNTER ROUNDS
#include <dlock/dlock.hpp>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

// Read, think, write: nothing but the lock guards the file.
void count(dlock::DistributedLock& lock, const std::string& counter, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    dlock::LockHandle held = lock.acquire({.wait = 60s});
    long number = 0;
    std::uint64_t last_token = 0;
    std::ifstream(counter) >> number >> last_token;
    std::this_thread::yield();
    if (held.token().value_or(0) <= last_token) throw std::runtime_error("the token did not rise");
    held.check();
    std::ofstream(counter, std::ios::trunc) << number + 1 << ' ' << *held.token() << '\n';
    if (const auto error = held.release()) throw dlock::LockError(error, {});
  }
}

void count_in_two_threads(const std::string& config, const std::string& counter, int rounds) {
  auto locks = dlock::LockManager::from_file(config);
  const auto lock = locks.lock("swap/counter");
  std::exception_ptr failed;
  std::thread other([&] {
    try {
      count(*lock, counter, rounds);
    } catch (...) {
      failed = std::current_exception();
    }
  });
  try {
    count(*lock, counter, rounds);
  } catch (...) {
    other.join();
    throw;
  }
  other.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) return 64;
  std::string line;
  while (std::getline(std::cin, line)) {
    count_in_two_threads(argv[1], argv[2], std::stoi(argv[3]));
    std::cout << "done" << std::endl;
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
