// SPDX-License-Identifier: Apache-2.0
//
// Take a lock, work, give it back. Where the lock lives is the one argument:
//
//   01_blocking file:///var/tmp/dlock-example
//   01_blocking zookeeper://127.0.0.1:2181/
#include <chrono>
#include <dlock/dlock.hpp>
#include <iostream>
#include <memory>

using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  auto locks = dlock::LockManager::open(argc > 1 ? argv[1] : "file:///var/tmp/dlock-example");
  const std::shared_ptr<dlock::DistributedLock> lock = locks.lock("orders/42");

  dlock::LockHandle held = lock->acquire({.wait = 5s});  // throws LockError after five seconds
  std::cout << "holding " << held.name() << ", fencing token " << held.token().value_or(0) << '\n';

  // Nobody else gets it meanwhile, not even this process through another handle.
  std::cout << "a second try: " << (lock->try_acquire() ? "got it?!" : "somebody holds it") << '\n';

  held.check();  // throws if the lock was lost while we worked
  if (const dlock::error_code error = held.release()) {
    std::cerr << "released too late: " << error.message() << '\n';
    return 1;
  }
  std::cout << "released\n";
  return 0;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
