// SPDX-License-Identifier: Apache-2.0
//
// What a user of the library writes. Built against the installed package, against the sources, and
// with pkg-config; run with the URL of a store.
#include <dlock/dlock.hpp>
#include <iostream>
#include <memory>
#include <string>

#ifdef BACKEND
#include <dlock/spi/descriptor.hpp>
#include BACKEND_HEADER
#endif

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
#ifdef BACKEND
  auto locks = dlock::LockManager::open(argv[1], {.backends = {&BACKEND()}});
#else
  auto locks = dlock::LockManager::open(argv[1]);
#endif
  const std::shared_ptr<dlock::DistributedLock> lock = locks.lock("consumer");
  dlock::LockHandle held = lock->acquire();
  if (!held.token() || *held.token() == 0) return 1;
  if (lock->try_acquire()) return 1;
  if (held.release()) return 1;
  std::cout << "dlock " << DLOCK_VERSION << ": took and gave back a lock\n";
  return 0;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
