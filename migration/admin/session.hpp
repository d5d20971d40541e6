// SPDX-License-Identifier: Apache-2.0
//
// Session: what all that an operator asks for needs: the stores of the plan, work on their loop,
// and an end of it from outside.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/config/routes.hpp"
#include "core/manager/engine.hpp"
#include "migration/admin/refusal.hpp"
#include "migration/eligibility.hpp"

namespace dlock::core::migration {

/// One call of run() at a time; stop() and tell() from any thread.
class Session {
 public:
  using Tell = std::function<void(const std::string&)>;

  Session(Config config, OpenOptions options, std::string plan, Tell tell);
  ~Session() { engine_->close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  struct Stores {
    std::shared_ptr<Store> from;
    std::shared_ptr<Store> to;
    std::shared_ptr<Store> gate;  ///< of a leased gate; else null
  };

  const std::string& plan() const noexcept { return plan_; }
  const std::string& from() const noexcept { return migrate_.from; }
  const std::string& to() const noexcept { return migrate_.to; }
  /// The store of the leased gate; empty: mode move.
  const std::string& gate() const noexcept { return migrate_.gate; }
  /// The patterns of the routes that have the plan.
  const std::vector<std::string>& patterns() const noexcept { return patterns_; }
  const Routes& routes() const noexcept { return engine_->routes(); }
  void tell(const std::string& line) const { tell_(line); }

  /// Runs a coroutine on the loop, and waits for it. With `stop`, which is called on the loop, it
  /// can be stopped; Stopped is thrown then when the work has come to its end, whatever that was.
  template <class T>
  T run(std::function<asio::awaitable<T>(Stores)> work, std::function<void()> stop = {}) {
    std::optional<T> result;
    std::exception_ptr error;
    begin(std::move(stop));
    try {
      result.emplace(engine_->run_on<T>(migrate_.from, [&](std::shared_ptr<Store> from) {
        auto begun = work(stores(std::move(from)));
        stop_if_told();
        return begun;
      }));
    } catch (...) {
      error = std::current_exception();
    }
    end();
    if (error) std::rethrow_exception(error);
    return std::move(*result);
  }

  /// False: nothing is under way that wants to be stopped.
  bool stop();

 private:
  Stores stores(std::shared_ptr<Store> from) const;
  void begin(std::function<void()> stop);
  /// On the loop: for a stop() that found nothing there to be stopped yet.
  void stop_if_told();
  void end();

  const std::shared_ptr<Engine> engine_;
  const std::string plan_;
  const Tell tell_;
  MigrateConfig migrate_;
  std::vector<std::string> patterns_;

  std::mutex mutex_;
  std::function<void()> stop_;
  bool stopping_ = false;
};

/// Throws Refusal for what will not pass by trying again, else LockError.
[[noreturn]] void fail(const Failure& failure);

/// The moment until which something is waited for.
TimePoint deadline_after(std::chrono::milliseconds wait, Env& env);

/// What stores declare, in their order. Connects them.
asio::awaitable<Result<std::vector<End>>> look_at_ends(std::vector<std::shared_ptr<Store>> stores);

}  // namespace dlock::core::migration
