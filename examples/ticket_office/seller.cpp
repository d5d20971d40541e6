// SPDX-License-Identifier: Apache-2.0
#include "seller.hpp"

#include <dlock/dlock.hpp>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "box_office.hpp"

namespace ticket_office {

namespace {

// Long enough for another seller to come in between: this is where an unprotected sale goes wrong.
void think(std::chrono::microseconds average) {
  static std::mt19937 random{std::random_device{}()};
  std::uniform_int_distribution<std::int64_t> spread(average.count() / 2, average.count() * 3 / 2);
  std::this_thread::sleep_for(std::chrono::microseconds(spread(random)));
}

// Read, think, write. False: nothing left to sell.
bool sell_one(BoxOffice& office, const Options& options, const dlock::LockHandle& held) {
  const int stock = office.read_stock();
  if (stock <= 0) return false;
  think(options.think);
  if (held) held.check();  // a lock that was lost meanwhile must not protect anything any more
  office.write_stock(stock - 1);
  office.record({*options.seller, held.token()});
  return true;
}

// A store that promises little says so once: by the first seller alone.
dlock::LockManager open(const Options& options) {
  auto how = dlock::OpenOptions::built_in();
  if (options.seller != 0) how.log = [](dlock::LogLevel, std::string_view) {};
  return dlock::LockManager::open(options.store, std::move(how));
}

}  // namespace

void sell(const Options& options, std::stop_token stop) {
  BoxOffice office(options.counter);
  if (!options.locked()) {
    const dlock::LockHandle nothing;
    while (!stop.stop_requested() && sell_one(office, options, nothing)) {
    }
    return;
  }

  auto locks = open(options);
  const std::shared_ptr<dlock::DistributedLock> lock = locks.lock(options.lock);
  bool more = true;
  while (more && !stop.stop_requested()) {
    dlock::error_code error;
    dlock::Diagnostics diagnostics;
    dlock::LockHandle held = lock->acquire({.diagnostics = &diagnostics}, stop, error);
    if (error == dlock::errc::cancelled) return;
    if (error) throw dlock::LockError(error, diagnostics);
    more = sell_one(office, options, held);
    error = held.release();
    if (error == dlock::errc::lock_lost) throw dlock::LockError(error, diagnostics);
  }
}

}  // namespace ticket_office
