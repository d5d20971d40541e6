// SPDX-License-Identifier: Apache-2.0
//
// What ./scripts/cost counts: the memory of those who wait for one lock, or of locks that are held.
// Prints the bytes of each.
//
//   dlock-memory waiters|held URL COUNT
#include <malloc.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dlock/dlock.hpp"

namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;

/// What malloc() has given and not got back.
std::size_t allocated() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

class EndsOfWaiting {
 public:
  explicit EndsOfWaiting(int expected) : left_(expected) {}
  void add() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) all_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    if (!all_.wait_for(lock, kPatience, [this] { return left_ == 0; })) {
      throw std::runtime_error("they still wait");
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  int left_;
};

std::size_t of_each_waiter(dlock::LockManager& locks, int count) {
  const auto lock = locks.lock("cost/waited-for");
  const auto held = lock->acquire();
  EndsOfWaiting ends(count);
  std::vector<dlock::detail::Canceller> cancels;
  cancels.reserve(static_cast<std::size_t>(count));
  const auto wait = [&] {
    cancels.push_back(lock->start_acquire(
        {}, [&ends](boost::system::error_code, dlock::LockHandle) { ends.add(); }));
  };
  const auto await_waiting = [&](std::size_t expected) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (locks.status("cost/waited-for").waiting.size() < expected) {
      if (std::chrono::steady_clock::now() > until) throw std::runtime_error("they do not wait");
      std::this_thread::sleep_for(1ms);
    }
  };
  // The first brings what all share.
  wait();
  await_waiting(1);
  const auto before = allocated();
  for (int i = 1; i < count; ++i) wait();
  await_waiting(static_cast<std::size_t>(count));
  const auto after = allocated();
  for (const auto& cancel : cancels) cancel();
  ends.wait();
  return (after - before) / static_cast<std::size_t>(count - 1);
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
  const std::string what = argc == 4 ? argv[1] : "";
  const int count = argc == 4 ? std::atoi(argv[3]) : 0;
  if ((what != "waiters" && what != "held") || count < 2 || count > 1000) {
    std::cerr << "usage: dlock-memory waiters|held URL COUNT (2 to 1000: `status` names so many)\n";
    return 64;
  }
  try {
    auto locks = dlock::LockManager::open(argv[2]);
    const auto bytes = what == "held" ? of_each_held(locks, count) : of_each_waiter(locks, count);
    std::cout << bytes << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "dlock-memory: " << error.what() << '\n';
    return 1;
  }
}
