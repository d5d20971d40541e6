// SPDX-License-Identifier: Apache-2.0
//
// How a coordinator locks and waits, so that all of it ends when it is told to stop.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "dlock/spi/signal.hpp"
#include "migration/await_lock.hpp"
#include "migration/step_report.hpp"

namespace dlock::core::migration {

/// Loop only. Must outlive what it does: its owner keeps itself alive meanwhile.
class Locker {
 public:
  asio::awaitable<LockedFor> lock(std::shared_ptr<Store> store, Acquisition::Request request);
  /// What to tell of a lock() without a handle; of a timed-out one, who holds it.
  asio::awaitable<StepReport> not_locked(std::shared_ptr<Store> store, std::string name,
                                         LockedFor locked);
  /// False: stopped, perhaps before its time.
  asio::awaitable<bool> pause(Env& env, Duration time);

  /// Ends all of it, now and later.
  void stop();
  bool stopped() const noexcept { return stopped_; }

 private:
  bool stopped_ = false;
  std::set<std::shared_ptr<Acquisition>> locking_;
  std::set<std::shared_ptr<Signal>> pauses_;
};

}  // namespace dlock::core::migration
