// SPDX-License-Identifier: Apache-2.0
//
// At most three at a time: downloads of many programs share three slots, however many there are. A
// program that dies gives its slot back. Start this program several times at once.
#include <chrono>
#include <dlock/dlock.hpp>
#include <iostream>
#include <sstream>
#include <thread>
#include <vector>

namespace {

void download(const dlock::Semaphore& slots, int number) {
  const dlock::LockHandle slot = slots.acquire();  // waits for one of the three
  std::ostringstream line;
  line << "download " << number << " runs\n";
  std::cout << line.str();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  slot.check();  // throws if the slot was lost meanwhile
}

}  // namespace

int main(int argc, char** argv) try {
  auto locks = dlock::LockManager::open(argc > 1 ? argv[1] : "file:///var/tmp/dlock-example");
  const dlock::Semaphore slots = locks.semaphore("downloads", 3);

  std::vector<std::thread> threads;
  for (int number = 1; number <= 6; ++number) {
    threads.emplace_back([&slots, number] { download(slots, number); });
  }
  for (std::thread& thread : threads) thread.join();

  // All of them at once, for what must run alone.
  if (auto all = slots.try_acquire_for(std::chrono::seconds(5), 3)) {
    const auto status = locks.semaphore_status("downloads");
    std::cout << status.held() << " of " << *status.limit << " are held by this program\n";
  }
  return 0;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
