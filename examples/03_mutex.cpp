// SPDX-License-Identifier: Apache-2.0
//
// The std vocabulary: dlock::Mutex in std::scoped_lock, and synchronized() for a whole function.
// Start this program several times at once: the counter in the file loses nothing.
#include <dlock/dlock.hpp>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

const std::string counter_file = "/var/tmp/dlock-example-counter";

int add_one() {
  int counter = 0;
  std::ifstream(counter_file) >> counter;
  std::ofstream(counter_file) << ++counter << '\n';
  return counter;
}

}  // namespace

namespace accounts {

// With a compiler that has std::source_location (g++ 11, clang 16) the name may be left out: it is
// then this function's own, "accounts::report".
void report(dlock::LockManager& locks) {
  dlock::synchronized(locks, "accounts::report", [] { std::cout << "one report at a time\n"; });
}

}  // namespace accounts

int main(int argc, char** argv) try {
  auto locks = dlock::LockManager::open(argc > 1 ? argv[1] : "file:///var/tmp/dlock-example");

  dlock::Mutex mutex(locks.lock("counter"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&mutex] {
      for (int round = 0; round < 25; ++round) {
        const std::scoped_lock guard(mutex);
        const std::scoped_lock again(mutex);  // re-entrant per thread
        add_one();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  accounts::report(locks);
  const std::scoped_lock guard(mutex);
  std::cout << "the counter is now " << add_one() << '\n';
  return 0;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
