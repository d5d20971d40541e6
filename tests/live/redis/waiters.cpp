// SPDX-License-Identifier: Apache-2.0
//
// A process with many waiters: redis-waiters URL NAME COUNT [child]. Each that is granted says so
// and gives back at once. With `child` it starts another program meanwhile, whose pid it says, and
// which outlives it.
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "dlock/async.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/redis.hpp"

namespace {

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void start_a_child() {
  std::array<char, 8> program{"sleep"};
  std::array<char, 8> argument{"300"};
  std::array<char*, 3> arguments{program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  if (::posix_spawnp(&pid, "sleep", nullptr, nullptr, arguments.data(), environ) != 0) std::abort();
  say("child " + std::to_string(pid));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  dlock::OpenOptions options;
  options.backends = {&dlock::redis::backend()};
  auto locks = dlock::LockManager::open(argv[1], std::move(options));
  const auto lock = locks.lock(argv[2]);
  std::mutex mutex;
  std::condition_variable changed;
  int left = std::atoi(argv[3]);
  for (int i = left; i > 0; --i) {
    lock->async_acquire({.wait = std::chrono::minutes(5)},
                        [&](dlock::error_code ec, dlock::LockHandle handle) {
                          if (!ec) handle.release();
                          say(ec ? "failed " + ec.message() : std::string("granted"));
                          const std::lock_guard guard(mutex);
                          --left;
                          changed.notify_all();
                        });
  }
  if (argc > 4) {
    // Once it has a subscription.
    std::array<char, 8> go{};
    if (std::fgets(go.data(), static_cast<int>(go.size()), stdin) == nullptr) return 1;
    start_a_child();
  }
  std::unique_lock guard(mutex);
  changed.wait(guard, [&] { return left == 0; });
  return 0;
}
