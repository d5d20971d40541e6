// SPDX-License-Identifier: Apache-2.0
//
// A lock on a store can be lost while it is held: the network parts, the process stands still for
// too long, an operator breaks it. Work that may take long watches for that. Try, while it runs:
//
//   04_loss zookeeper://127.0.0.1:2181/?session_timeout=4s
//   dlock --store zookeeper://127.0.0.1:2181/ status nightly
#include <chrono>
#include <condition_variable>
#include <dlock/dlock.hpp>
#include <iostream>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

using namespace std::chrono_literals;

namespace {

// Works in small steps until it is done (true) or told to stop (false).
bool work(std::stop_token stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

int main(int argc, char** argv) try {
  auto locks = dlock::LockManager::open(argc > 1 ? argv[1] : "file:///var/tmp/dlock-example");
  const auto seconds = std::chrono::seconds(argc > 2 ? std::stoi(argv[2]) : 1);
  const std::shared_ptr<dlock::DistributedLock> lock = locks.lock("nightly");

  dlock::LockHandle held = lock->acquire({.wait = 10s});
  held.on_state([](dlock::HandleState state, dlock::LossReason reason) {
    std::cout << "now " << dlock::to_string(state);
    if (reason != dlock::LossReason::none) std::cout << ": " << dlock::to_string(reason);
    std::cout << std::endl;
  });

  // Requested at the moment the lock is lost; README.md, "You are told", has the limits.
  const bool done = work(held.stop_token(), seconds);
  std::cout << (done ? "the work is done" : "stopped: the lock is gone") << '\n';
  if (const dlock::error_code error = held.release()) std::cout << error.message() << '\n';
  return done ? 0 : 1;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
