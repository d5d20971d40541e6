// SPDX-License-Identifier: Apache-2.0
//
// A request takes the lock, a worker gives it back: the first process exports its grant as a text,
// which travels with the job; the second adopts it, with a higher token. Start it without words,
// and start it again with what it has printed. The store must be able to (redis; `dlock doctor`
// says).
#include <chrono>
#include <dlock/dlock.hpp>
#include <iostream>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;

void take_a_request(dlock::LockManager& locks) {
  auto held = locks.lock("orders/42")->acquire({.wait = 5s});
  const auto token = held.token().value_or(0);
  const std::string text = held.export_grant({.within = 30s});  // from here on it is not ours
  std::cout << text << '\n' << std::flush;
  // Whoever takes requests lives on; this program stays until the worker has come, or 30 s.
  for (int i = 0; i < 300 && locks.status("orders/42").token == token; ++i) {
    std::this_thread::sleep_for(100ms);
  }
}

void work(dlock::LockManager& locks, const std::string& text) {
  auto held = locks.adopt(text);
  std::cout << "working with token " << held.token().value_or(0) << '\n';
  std::this_thread::sleep_for(1s);
  held.check();
  held.release();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string text = argc > 1 ? argv[1] : "";
  const char* const url = argc > 2 ? argv[2] : "redis://127.0.0.1:6379";
  auto locks = dlock::LockManager::open(url);
  text.empty() ? take_a_request(locks) : work(locks, text);
  return 0;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
