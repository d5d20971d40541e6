// SPDX-License-Identifier: Apache-2.0
//
// Several locks at once: money goes from one account to another under the locks of both. Whoever
// sends it back at the same time names them the other way round, and neither waits for the other
// for ever: they are taken in one order, all or none. Start this program several times at once.
#include <chrono>
#include <dlock/dlock.hpp>
#include <fstream>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

namespace {

std::string file_of(const std::string& account) { return "/var/tmp/dlock-example-" + account; }

int balance(const std::string& account) {
  int amount = 0;
  std::ifstream(file_of(account)) >> amount;
  return amount;
}

void move_one(dlock::LockManager& locks, const std::string& from, const std::string& to) {
  const auto both = locks.lock_all({"accounts/" + from, "accounts/" + to});
  dlock::LockHandle held = both->acquire({.wait = 30s});
  // Each account is guarded by its own lock, and fenced with the token of that.
  for (const auto& grant : held.sequencers()) {
    std::cout << grant.name() << ": token " << grant.token() << '\n';
  }
  const int left = balance(from) - 1;
  const int there = balance(to) + 1;
  held.check();  // throws if either of the two is not ours any more
  std::ofstream(file_of(from)) << left << '\n';
  std::ofstream(file_of(to)) << there << '\n';
}

}  // namespace

int main(int argc, char** argv) try {
  auto locks = dlock::LockManager::open(argc > 1 ? argv[1] : "file:///var/tmp/dlock-example");
  move_one(locks, "alice", "bob");
  move_one(locks, "bob", "alice");
  const auto both = locks.lock_all({"accounts/alice", "accounts/bob"});
  const auto held = both->acquire({.wait = 30s});
  std::cout << "together they have " << balance("alice") + balance("bob") << '\n';
  return 0;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
