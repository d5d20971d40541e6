// SPDX-License-Identifier: Apache-2.0
//
// Fiber: a helper thread of a simulated process, for code that blocks. It has a stack of its own
// and runs on the world's thread until it parks or ends, and goes on when it is resumed. So a
// blocking call takes simulated time, and the run stays the same for the same seed.
#pragma once

#include <memory>

#include "dlock/spi/env.hpp"

namespace dlock::simulation {

class Fiber : public std::enable_shared_from_this<Fiber> {
 public:
  /// Runs `job` until it parks or ends.
  static std::shared_ptr<Fiber> start(Job job);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs on until it parks again or ends. From the world only.
  void resume();
  bool ended() const noexcept;

  /// In a fiber: gives the word back to whoever started or resumed it.
  static void park();
  /// Those of this world (its thread) that have not ended.
  static std::size_t alive();
  /// The one that runs; null in the world.
  static std::shared_ptr<Fiber> current();

 private:
  struct Stack;

  Fiber();

  std::unique_ptr<Stack> stack_;
};

}  // namespace dlock::simulation
