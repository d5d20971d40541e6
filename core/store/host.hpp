// SPDX-License-Identifier: Apache-2.0
//
// What a store and its holds need of the manager they belong to. The Engine is one; the simulation
// has its own, so that stores run unchanged under virtual time.
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
  /// Runs it on the loop. Any thread. False, and it is dropped: the manager is closed, or it is the
  /// parent's of a fork()ed child. What reaches back to the manager must be posted so: a stopped
  /// loop would keep it, and with it the manager, for ever.
  virtual bool post(Job job) = 0;
  /// Runs what calls user code, apart from the loop: neither waits for the other, nor for another
  /// errand. Any thread.
  virtual void post_callback(std::shared_ptr<Errand> errand) noexcept = 0;
  /// For completion handlers without an executor of their own: one at a time, apart from the loop
  /// and from post_callback(). Any thread.
  virtual asio::any_io_executor callback_executor() = 0;
  /// Gives a hold back on its store's loop. Any thread.
  virtual void release(const std::shared_ptr<Hold>& hold, Releaser::Done done) = 0;
  /// A lock that a user had is lost. Any thread, from an errand; may run user code.
  virtual void on_loss(const Loss&) {}
  /// Why the lock of that name cannot change its process; empty: it can, as far as the manager
  /// knows. The loop.
  virtual std::string refused_export(const std::string& /*lock*/) const { return {}; }
  virtual void log(LogLevel level, std::string_view text) const = 0;
  /// Logs a warning whose text this process has not logged so before, by whichever manager.
  virtual void warn_once(std::string_view text) const { log(LogLevel::warning, text); }
};

}  // namespace dlock::core
