// SPDX-License-Identifier: Apache-2.0
//
// What `dlock migrate` does with a plan that governs patterns, command by command: whoever operates
// may die in each of them, and another begins anew.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/simulation/migration/program.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation::migration {

enum class Aim { start, advance, rollback, withdraw, finish };

const char* to_string(Aim aim) noexcept;

/// What the operators of a plan want at present.
struct Orders {
  Plan plan;  ///< without an id
  Aim aim = Aim::start;
  /// Now and then somebody turns the other way meanwhile, or starts it once more.
  bool contrary = true;
  /// Of `finish`: programs that do not take part were stopped.
  bool strangers_gone = false;
  std::function<std::string()> choose;  ///< for commands by name
  bool started = false;                 ///< a start has said so
  bool done = false;                    ///< somebody has come to the end of the aim
  std::uint64_t refused = 0;            ///< starts
};

/// One command.
asio::awaitable<void> carry_out(Command command, World& world, Orders& orders);

}  // namespace dlock::simulation::migration
