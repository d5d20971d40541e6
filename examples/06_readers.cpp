// SPDX-License-Identifier: Apache-2.0
//
// Readers together, a writer alone: prices are read under a shared lock by as many programs as like
// to, and changed under the same lock held exclusively. Start this program several times at once.
#include <chrono>
#include <dlock/dlock.hpp>
#include <fstream>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

const std::string price_file = "/var/tmp/dlock-example-price";

int price() {
  int value = 100;
  std::ifstream(price_file) >> value;
  return value;
}

void raise_price(dlock::SharedMutex& prices) {
  prices.lock();
  std::ofstream(price_file) << price() + 1 << '\n';
  // From writer to reader without a gap: nobody else writes before it is read again.
  prices.unlock_and_lock_shared();
  const std::shared_lock reading(prices, std::adopt_lock);
  std::cout << "the price is now " << price() << '\n';
}

}  // namespace

int main(int argc, char** argv) try {
  auto locks = dlock::LockManager::open(argc > 1 ? argv[1] : "file:///var/tmp/dlock-example");
  dlock::SharedMutex prices(locks.lock("prices"));

  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&prices] {
      const std::shared_lock reading(prices);  // beside the others
      if (price() < 100) std::cout << "a price that was only half written\n";
    });
  }
  raise_price(prices);
  for (std::thread& reader : readers) reader.join();

  // The same without the std vocabulary.
  const auto lock = locks.lock("prices");
  const auto held = lock->acquire({.wait = std::chrono::seconds(5), .mode = dlock::Mode::shared});
  std::cout << "read " << price() << " as a " << to_string(held.mode()) << " holder\n";
  return 0;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
