// SPDX-License-Identifier: Apache-2.0
//
// What a user of the library writes. Built against the installed package, against the sources, and
// with pkg-config; run with a folder for its locks.
#include <dlock/dlock.hpp>
#include <iostream>
#include <memory>
#include <string>

#ifdef ONE_BACKEND
#include <dlock/backend.hpp>
#include <dlock/local.hpp>
#endif

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const std::string url = std::string("file://") + argv[1];
#ifdef ONE_BACKEND
  auto locks = dlock::LockManager::open(url, {.backends = {&dlock::local::backend()}});
#else
  auto locks = dlock::LockManager::open(url);
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
