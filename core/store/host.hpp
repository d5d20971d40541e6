// SPDX-License-Identifier: Apache-2.0
//
// Host: the part of a manager that its stores and holds use. The Engine is one. The simulation has
// its own, so that stores run unchanged under virtual time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/loop/crew.hpp"
#include "core/store/releaser.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/spi/env.hpp"

namespace dlock::core {

class Hold;

class Host : public std::enable_shared_from_this<Host> {
 public:
  virtual ~Host() = default;
  virtual Env& env() noexcept = 0;
  /// Runs it on the loop. Any thread. Returns false, and drops it, if the manager is closed or is
  /// the parent's of a fork()ed child. Use it for a job that refers to the manager: a stopped loop
  /// would keep the job, and the manager with it, for ever.
  virtual bool post(Job job) = 0;
  /// Runs a task that calls user code, apart from the loop: neither waits for the other, nor for
  /// another task. Any thread.
  virtual void post_callback(std::shared_ptr<Errand> errand) noexcept = 0;
  /// For completion handlers without an executor: one at a time, apart from the loop and from
  /// post_callback(). Any thread.
  virtual asio::any_io_executor callback_executor() = 0;
  /// Releases a hold on its store's loop. Any thread.
  virtual void release(const std::shared_ptr<Hold>& hold, Releaser::Done done) = 0;
  /// The lock of a user is lost. Any thread, from a task of post_callback(); may run user code.
  virtual void on_loss(const Loss&) {}
  /// Why the lock of that name cannot change its process; empty: it can, as far as the manager
  /// knows. The loop.
  virtual std::string refused_export(const std::string& /*lock*/) const { return {}; }
  virtual void log(LogLevel level, std::string_view text) const = 0;
  /// Logs a warning whose text this process has not logged so before, by whichever manager.
  virtual void warn_once(std::string_view text) const { log(LogLevel::warning, text); }
};

}  // namespace dlock::core
