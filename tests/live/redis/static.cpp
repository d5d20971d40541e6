// SPDX-License-Identifier: Apache-2.0
//
// Manager and handle of static storage, made before anything that the library makes at first use:
// redis-static URL NAME. Says `held`, returns from main() at the end of its input.
#include <cstdio>
#include <optional>

#include "dlock/lock_manager.hpp"
#include "dlock/redis.hpp"

namespace {

std::optional<dlock::LockManager> manager;
std::optional<dlock::LockHandle> handle;

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  dlock::OpenOptions options;
  options.backends = {&dlock::redis::backend()};
  manager.emplace(dlock::LockManager::open(argv[1], std::move(options)));
  handle.emplace(manager->lock(argv[2])->acquire());
  std::puts("held");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
