// SPDX-License-Identifier: Apache-2.0
//
// What every `migrate` verb needs: the plan's administration, and an end at Ctrl-C that leaves
// nothing half-written behind (every step is a compare-and-set).
#pragma once

#include <functional>
#include <future>

#include "cli/arguments.hpp"
#include "cli/process/wake.hpp"
#include "migration/admin.hpp"
#include "program/exit_codes.hpp"
#include "program/signals.hpp"

namespace dlock::cli {

/// Thrown when a signal ended the work.
struct Interrupted {
  int signal = 0;
};

class MigrateSession {
 public:
  /// Throws LockError{config_invalid} if no route has this plan.
  explicit MigrateSession(const Arguments& arguments);

  core::migration::Admin& admin() noexcept { return admin_; }

  /// Has work done on another thread. A signal ends it: steps that are under way are stopped, and
  /// Interrupted is thrown when they have come to their end; anything else, and whatever a second
  /// signal finds, ends with the program at once.
  template <class T>
  T run(const std::function<T()>& work) {
    Wake done;
    auto result = std::async(std::launch::async, [&] {
      struct Notify {
        Wake& wake;
        ~Notify() { wake.notify(); }
      } notify{done};
      return work();
    });
    const int signal = wait_for_end(done);
    if (signal == 0) return result.get();
    result.wait();
    throw Interrupted{signal};
  }

 private:
  /// 0, or the signal that came first.
  int wait_for_end(Wake& done);

  program::Signals signals_;  // before there are threads
  core::migration::Admin admin_;
};

/// What a step or a whole plan came to.
program::Exit exit_of(core::migration::Verdict verdict) noexcept;

/// The request, as far as it is the same in both modes.
core::migration::StartRequest start_request(const Arguments& arguments);
core::migration::StepRequest step_request(const Arguments& arguments, core::migration::Goal goal);

}  // namespace dlock::cli
