// SPDX-License-Identifier: Apache-2.0
//
// Of several processes one leads, and works while it leads. Start it twice, and end the first:
//
//   08_leader file:///var/tmp/dlock-example
#include <chrono>
#include <condition_variable>
#include <dlock/dlock.hpp>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <string>

using namespace std::chrono_literals;

namespace {

// Works in small steps until it is told to stop, or has done them all.
void work(const std::stop_token& stop, int steps) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  for (int i = 0; i < steps && !stop.stop_requested(); ++i) {
    std::cout << "leading, step " << i << std::endl;
    wake.wait_for(lock, stop, 100ms, [] { return false; });
  }
}

}  // namespace

int main(int argc, char** argv) try {
  auto locks = dlock::LockManager::open(argc > 1 ? argv[1] : "file:///var/tmp/dlock-example");
  const int steps = argc > 2 ? std::stoi(argv[2]) : 10;

  dlock::LeaderOptions options;
  options.on_event = [](const dlock::LeaderEvent& event) {
    std::cout << dlock::to_string(event.kind) << std::endl;
  };
  dlock::Leader leader(
      locks, "example/leader", [steps](const std::stop_token& stop) { work(stop, steps); },
      options);
  leader.campaign();
  // Until the work is done; resign() would end it earlier.
  if (const auto error = leader.wait()) std::cout << error.message() << '\n';

  // What is to be done once a day, by whoever comes first.
  dlock::Schedule daily(locks, "example/daily", {.at_most_for = 1min, .every = 24h});
  const bool done = daily.run([](const std::stop_token&) { std::cout << "today's run\n"; });
  if (!done) std::cout << "today's run was elsewhere\n";
  return 0;
} catch (const dlock::LockError& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
