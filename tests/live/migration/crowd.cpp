// SPDX-License-Identifier: Apache-2.0
#include "tests/live/migration/crowd.hpp"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

#include "tests/live/migration/board.hpp"

namespace dlock::fleet {

using namespace std::chrono_literals;

int crowd(const CrowdOptions& options) {
  Board board(options.board);
  std::vector<LockManager> programs;
  for (std::size_t i = 0; i < options.programs; ++i) {
    auto open = OpenOptions::built_in();
    open.log = [](LogLevel, std::string_view) {};
    programs.push_back(LockManager::from_file(options.config, std::move(open)));
  }
  auto held = programs[0].lock(long_name(options.first))->acquire({.wait = 60s});
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < options.programs; ++i) {
    threads.emplace_back([&, i](const std::stop_token& stop) {
      Load load;
      load.program = options.first + i;
      load.names = Board::kSlots;
      load.think_ms = 4000;
      work(programs[i], board, load, stop);
    });
  }
  for (std::string line; std::getline(std::cin, line);) {
  }
  if (held.state() != HandleState::held) {
    board.complain(fmt::format("{} is {}: {}", held.name(), to_string(held.state()),
                               to_string(held.loss_reason())));
  }
  for (auto& thread : threads) thread.request_stop();
  threads.clear();
  return 0;
}

}  // namespace dlock::fleet
