// SPDX-License-Identifier: Apache-2.0
//
// What the safety scenarios lock with: a lock that can say what its holder may believe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "compare/drivers/worker.hpp"

namespace dlock::compare {

/// A moment on the clock of now_ns(), up to which the holder may believe; nullopt: for ever.
using Until = std::optional<std::int64_t>;

class Guarded {
 public:
  virtual ~Guarded() = default;
  /// Waits for ever; throws std::exception when the store does not let it.
  virtual void acquire() = 0;
  /// Never later than it is.
  virtual Until until() = 0;
  virtual std::optional<std::uint64_t> token() = 0;
  /// Why it is lost, as told; empty: it is held, as far as the holder knows.
  virtual std::string lost() = 0;
  /// Empty, or what went wrong.
  virtual std::string release() = 0;
  /// Releases from a thread that does not own the lock, as a bug in a program would. The answer.
  virtual std::string release_by_another_thread() = 0;
};

/// `on_loss` may be called from any thread.
std::unique_ptr<Guarded> make_dlock_guarded(const Job& job, std::function<void()> on_loss);
/// The locks that users write by hand: `naive` names the flaw.
std::unique_ptr<Guarded> make_naive_guarded(const Job& job);

}  // namespace dlock::compare
