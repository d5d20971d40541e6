// SPDX-License-Identifier: Apache-2.0
//
// Admin: one plan of a configuration, in the hands of whoever operates it. It does what `dlock
// migrate` is asked for; how that is asked, printed and turned into an exit status is the
// command's. Whatever it does may be repeated at any time, by anybody: what there is to remember is
// in the stores, and every step is a compare-and-set.
//
// The only header of migration/ that programs include.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "dlock/config.hpp"
#include "dlock/lock_manager.hpp"
#include "migration/admin/leased_admin.hpp"
#include "migration/admin/move_admin.hpp"
#include "migration/admin/refusal.hpp"

namespace dlock::core::migration {

class Session;

/// Blocking, with the two threads of a manager. One call at a time, but stop(), which may be called
/// from any thread.
class Admin {
 public:
  /// Told what it waits for and what an operator should know, a line each, when it is so; on any
  /// thread.
  using Tell = std::function<void(const std::string&)>;

  /// Throws LockError{config_invalid}: the configuration cannot be used, no route of it has the
  /// plan, or two have it between different stores. No I/O.
  Admin(Config config, OpenOptions options, std::string plan, Tell tell);
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  /// By the plan's routes, one of the two; each throws Stopped, Refusal, Misuse and LockError.
  bool is_leased() const noexcept;
  MoveAdmin& move() noexcept { return move_; }
  LeasedAdmin& leased() noexcept { return leased_; }

  /// Ends the steps that are under way: their call throws Stopped when nothing is left half done.
  /// False: none are; what is asked of the stores leaves nothing behind, and the program may end.
  bool stop();

 private:
  const std::unique_ptr<Session> session_;
  MoveAdmin move_;
  LeasedAdmin leased_;
};

}  // namespace dlock::core::migration
