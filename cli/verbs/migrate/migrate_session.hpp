// SPDX-License-Identifier: Apache-2.0
//
// What every `migrate` verb needs: the two stores of a plan, work on their loop, and an end at
// Ctrl-C that leaves nothing half-written behind (every step is a compare-and-set).
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>

#include "cli/arguments.hpp"
#include "cli/process/signals.hpp"
#include "cli/process/wake.hpp"
#include "core/manager/engine.hpp"

namespace dlock::cli {

/// Thrown when a signal ended the work.
struct Interrupted {
  int signal = 0;
};

class MigrateSession {
 public:
  /// Throws LockError{config_invalid} if no route has this plan.
  explicit MigrateSession(const Arguments& arguments);
  ~MigrateSession() { engine_->close(); }
  MigrateSession(const MigrateSession&) = delete;
  MigrateSession& operator=(const MigrateSession&) = delete;

  struct Stores {
    std::shared_ptr<core::Store> from;
    std::shared_ptr<core::Store> to;
    std::shared_ptr<core::Store> window;  ///< of mode dual, where the route names it; else null
  };

  const std::string& from() const noexcept { return migrate_.from; }
  const std::string& to() const noexcept { return migrate_.to; }
  bool is_dual() const noexcept { return migrate_.mode == MigrateMode::dual; }
  /// As the route writes it; may be empty.
  const std::string& window() const noexcept { return migrate_.window; }
  /// The patterns of the routes that have the plan.
  const std::vector<std::string>& patterns() const noexcept { return patterns_; }
  const core::Engine& engine() const noexcept { return *engine_; }

  /// Runs a coroutine on the loop. A signal ends it: `stop` is called on the loop, and Interrupted
  /// is thrown when the work has come to its end; without `stop`, and with a second signal, the
  /// program ends at once.
  template <class T>
  T run(std::function<asio::awaitable<T>(Stores)> work, const std::function<void()>& stop = {}) {
    Wake done;
    auto result = std::async(std::launch::async, [&] {
      struct Notify {
        Wake& wake;
        ~Notify() { wake.notify(); }
      } notify{done};
      return engine_->run_on<T>(migrate_.from, [&](std::shared_ptr<core::Store> from) {
        return work(stores(std::move(from)));
      });
    });
    const int signal = wait_for_end(done, stop);
    if (signal == 0) return result.get();
    result.wait();
    throw Interrupted{signal};
  }

 private:
  Stores stores(std::shared_ptr<core::Store> from) const;
  /// 0, or the signal that came first.
  int wait_for_end(Wake& done, const std::function<void()>& stop);

  Signals signals_;
  std::shared_ptr<core::Engine> engine_;
  MigrateConfig migrate_;
  std::vector<std::string> patterns_;
};

}  // namespace dlock::cli
