// SPDX-License-Identifier: Apache-2.0
//
// A holder that gives way: it may keep the lock for a minute at most, says that its work comes on,
// and ends early when somebody asks for the lock: this program with the word `ask`, `dlock break
// --ask`, or on ZooKeeper Curator's Revoker. Start it once as it is, and once more with `ask`.
#include <atomic>
#include <chrono>
#include <dlock/dlock.hpp>
#include <iostream>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;

void ask(dlock::LockManager& locks) {
  const auto asked = locks.ask("reindex", std::nullopt, 10s);
  const bool is_heard = asked.heard.value_or(true);  // not every store knows
  std::cout << (is_heard ? "asked\n" : "asked, but nobody listens\n");
}

void work(dlock::LockManager& locks) {
  auto held = locks.lock("reindex")->acquire(
      {.wait = 30s, .max_hold = 1min, .progress_every = 5s, .max_queue = 3, .revocable = true});
  std::atomic<bool> give_way = false;
  held.on_revoke([&give_way](const dlock::Revocation& how) {
    std::cout << (how.who.empty() ? "somebody" : how.who) << " asks for the lock\n";
    give_way = true;
  });
  for (int step = 0; step < 100 && !give_way; ++step) {
    held.check();  // lost, also by one of its bounds: stop
    std::this_thread::sleep_for(100ms);
    held.progress();
  }
  std::cout << (give_way ? "giving way\n" : "done\n");
  held.release();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string word = argc > 1 ? argv[1] : "";
  const char* const url = argc > 2 ? argv[2] : "file:///var/tmp/dlock-example";
  auto locks = dlock::LockManager::open(url);
  word == "ask" ? ask(locks) : work(locks);
  return 0;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
