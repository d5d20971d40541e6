// SPDX-License-Identifier: Apache-2.0
//
// A program whose manager and handle have static storage and end after main, in either order:
//
//   static-exit URL manager-first|handle-first
//
// Says `held`, and returns from main when its standard input ends.
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "dlock/dlock.hpp"

namespace {

using namespace std::chrono_literals;

// What is declared later ends earlier.
struct {
  std::optional<dlock::LockHandle> handle;
  std::optional<dlock::LockManager> manager;
} manager_ends_first;
struct {
  std::optional<dlock::LockManager> manager;
  std::optional<dlock::LockHandle> handle;
} handle_ends_first;

template <class Statics>
void hold(Statics& statics, const std::string& url) {
  statics.manager.emplace(dlock::LockManager::open(url));
  statics.handle.emplace(statics.manager->lock("static")->acquire({.wait = 30s}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string url = argv[1];
  if (std::string(argv[2]) == "manager-first") {
    hold(manager_ends_first, url);
  } else {
    hold(handle_ends_first, url);
  }
  [[maybe_unused]] const auto written = ::write(1, "held\n", 5);
  std::array<char, 64> input{};
  while (::read(0, input.data(), input.size()) > 0) continue;
  return 0;
}
