// SPDX-License-Identifier: Apache-2.0
//
// A lock holder in a process of its own, for tests that kill or stop one:
//   zookeeper-process URL NAME
// acquires, prints `held TOKEN`, and every change of state as `state NAME REASON WHEN`, WHEN being
// nanoseconds on the clock of leases, which all processes of a machine share. On a line from
// standard input it does as told: `check` prints `ok` or `lost`, `release` prints its error_code's
// message or `released`, `cycle` takes and gives another lock a hundred times and prints `cycled`,
// and the end of input ends it.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <mutex>
#include <string>

#include "dlock/clock.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/zookeeper.hpp"

namespace {

void say(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::cout << line << std::endl;
}

int hold(const std::string& url, const std::string& name) {
  dlock::OpenOptions options;
  options.backends = {&dlock::zookeeper::backend()};
  auto locks = dlock::LockManager::open(url, options);
  auto held = locks.lock(name)->acquire();
  say(fmt::format("held {}", held.token().value_or(0)));
  held.on_state([](dlock::HandleState state, dlock::LossReason reason) {
    const auto when = dlock::BoottimeClock::now().time_since_epoch().count();
    say(fmt::format("state {} {} {}", dlock::to_string(state), dlock::to_string(reason), when));
  });
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "check") {
      dlock::error_code ec;
      held.check(ec);
      say(ec ? "lost" : "ok");
    } else if (line == "release") {
      const auto ec = held.release();
      say(ec == dlock::errc::lock_lost ? "release: lost" : ec ? ec.message() : "released");
    } else if (line == "cycle") {
      const auto other = locks.lock(name + "/cycle");
      for (int i = 0; i < 100; ++i) other->acquire({.wait = std::chrono::seconds(20)}).release();
      say("cycled");
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  try {
    return hold(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
