// SPDX-License-Identifier: Apache-2.0
//
// Engine: the implementation of one LockManager. Usually two threads, for any number of locks: the
// loop, on which all stores run, and one that reports losses, which gets help while user code
// blocks it. Both start at the first use, so that a program may open its manager, fork() its
// workers, and lock in them. Completion handlers and the log have one thread each while they have
// work.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/config/routes.hpp"
#include "core/loop/completions.hpp"
#include "core/loop/crew.hpp"
#include "core/loop/driving.hpp"
#include "core/loop/real_env.hpp"
#include "core/manager/calls.hpp"
#include "core/manager/lock_context.hpp"
#include "core/manager/lock_order.hpp"
#include "core/manager/reentry.hpp"
#include "core/manager/sections.hpp"
#include "core/manager/strategy.hpp"
#include "core/process/log_lines.hpp"
#include "core/store/acquisition.hpp"
#include "core/store/cached_lock.hpp"
#include "core/store/store.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/lock_manager.hpp"
#include "dlock/spi/signal.hpp"
#include "dlock/spi/thread.hpp"

namespace dlock::core {

/// Why a grant of such a route is neither exported nor adopted.
inline constexpr std::string_view kMigrates =
    "the route of this lock has `migrate`: while a plan moves it its grant cannot pass to "
    "another process; wait until the plan is finished and `migrate` is gone from the route";

/// Thread safety: all members from any thread, if not said otherwise.
class Engine final : public Host, public detail::LockContext {
 public:
  /// Throws LockError{config_invalid}, {unavailable} if no descriptor is left.
  static std::shared_ptr<Engine> make(Config config, OpenOptions options);
  explicit Engine(Config config, OpenOptions options);
  ~Engine() override;

  std::shared_ptr<DistributedLock> lock(std::string name);
  /// Semaphore permits. 0 means a lock, not a semaphore.
  struct Permits {
    std::uint32_t count = 0;
    std::uint32_t limit = 0;
  };
  /// `cached` may be null: its claim is the store's alone.
  detail::Canceller start_acquire(const std::string& name, const RouteConfig& route,
                                  AcquireOptions options, detail::AcquireHandler handler,
                                  const std::shared_ptr<CachedLock>& cached, Permits permits);
  /// Starts to adopt an exported grant; the store decides.
  detail::Canceller start_adoption(const std::string& name, const RouteConfig& route,
                                   std::shared_ptr<const Adoption> adoption, AcquireOptions options,
                                   detail::AcquireHandler handler);
  /// Returns the CachedLock that all users of that name in this process share. Null: its store
  /// keeps no claims, or may not be the lock's only store.
  std::shared_ptr<CachedLock> cached(const std::string& name, const RouteConfig& route);
  /// Returns true if the lock was kept here, and `handler` was called.
  bool take_cached(CachedLock& cached, const RouteConfig& route, const AcquireOptions& options,
                   detail::AcquireHandler& handler);
  void release(const std::shared_ptr<Hold>& hold, Releaser::Done done) override;

  /// The store that `name` is routed to. Throws LockError{invalid_name, config_invalid}.
  const RouteConfig& route(const std::string& name) const;
  std::vector<std::string> store_names() const;
  const Store::Setup& setup_of(const std::string& store) const;
  /// Returns the wait of an acquire without a `wait`; empty: no bound.
  std::optional<std::chrono::milliseconds> default_wait(const RouteConfig& route) const noexcept;

  /// Runs a coroutine of a store on the loop and waits for it. Throws LockError `closed`, also when
  /// the manager closes meanwhile, and `unavailable` if the threads cannot be made.
  template <class T>
  T run_on(const std::string& store,
           std::function<asio::awaitable<T>(std::shared_ptr<Store>)> operation);

  /// Runs a coroutine of a store on the loop and does not wait. `done` is called once, on the loop,
  /// or inside if it cannot begin.
  template <class T>
  void start_on(const std::string& store,
                std::function<asio::awaitable<T>(std::shared_ptr<Store>)> operation,
                typename Calls::Told<T>::Done done);

  // The loop only.
  std::shared_ptr<Store> store(const std::string& name) const;
  /// Null: the route has one store.
  Strategy* strategy(const RouteConfig& route);
  /// Converts a request for the route's first store into one for `store`.
  Acquisition::Request at(const std::string& store, Acquisition::Request request) const;

  const Routes& routes() const noexcept { return routes_; }
  const Sections& sections() const noexcept { return sections_; }
  /// Null: the order is not watched, or not in this process.
  LockOrder* lock_order() noexcept {
    return options_.watch_lock_order && !is_foreign() ? &lock_order_ : nullptr;
  }

  /// Does what LockManager::close() says.
  void close() noexcept;

  Env& env() noexcept override { return runtime_->env; }
  bool post(Job job) override;
  void post_callback(std::shared_ptr<Errand> errand) noexcept override {
    runtime_->tellers->post(std::move(errand));
  }
  /// This process's own: after a fork() the child's engine makes a new one.
  Reentry& reentry() override;
  asio::any_io_executor callback_executor() override;
  void on_loss(const Loss& loss) override;
  std::string refused_export(const std::string& lock) const override;
  void log(LogLevel level, std::string_view text) const override;
  void warn_once(std::string_view text) const override;

 private:
  struct Runtime {
    Runtime(bool callers_lead, Completions::OnException on_exception);
    const std::shared_ptr<Driving> driving;  ///< runs `env`, which posts to it until its end
    RealEnv env;
    const std::shared_ptr<Crew> tellers;
    const std::shared_ptr<Completions> completions;
    Calls calls;
    std::map<std::string, std::shared_ptr<Store>> stores;
    std::unique_ptr<Strategies> make_strategy;
    std::map<const RouteConfig*, std::unique_ptr<Strategy>> strategies;  ///< loop only
    std::vector<char> noted;  ///< by route: note_route() need do nothing. Loop only
    std::thread loop;
    std::promise<void> closed;
    std::future<void> when_closed = closed.get_future();
  };

  void make_runtime();
  void begin_anew_in_child();
  std::shared_ptr<LogLines> make_log() const;
  /// As post(), with the reason.
  Failure try_post(Job job);
  void start_threads();
  void finish_threads() noexcept;
  std::shared_ptr<Engine> self() { return std::static_pointer_cast<Engine>(shared_from_this()); }
  Failure start_locked();
  bool is_foreign() const noexcept;
  Acquisition::Request make_request(const std::string& name, const RouteConfig& route,
                                    const AcquireOptions& options, Permits permits);
  detail::Canceller start(const std::string& name, Acquisition::Request request,
                          const RouteConfig& route, const AcquireOptions& options,
                          detail::AcquireHandler handler,
                          const std::shared_ptr<CachedLock>& cached);
  UseLimit use_limit(const RouteConfig& route, const AcquireOptions& options) const noexcept;
  static void hand_out(const std::shared_ptr<Hold>& hold, const UseLimit& limit);
  /// On the loop; returns what cancels it.
  Job launch(const RouteConfig& route, Acquisition::Request request,
             const std::shared_ptr<detail::AcquireHandler>& handler,
             const std::shared_ptr<CachedLock>& cached);
  /// Adds the route to its store's note of routes (route_uses.hpp), later and once a half-day at
  /// most. A failure has no effect. The loop.
  void note_route(const RouteConfig& route);
  void write_route(std::size_t index);
  Releaser::Done guarded(const std::shared_ptr<Hold>& hold, Releaser::Done done);
  void tell_loss_at_release(Hold& hold);
  template <class T>
  using Operation = std::function<asio::awaitable<T>(std::shared_ptr<Store>)>;
  template <class T, class Call>
  asio::awaitable<void> answer(std::shared_ptr<Call> call, std::string store,
                               Operation<T> operation);
  asio::awaitable<void> close_stores();
  static asio::awaitable<void> close_store(std::shared_ptr<Store> store, OneShot<bool> closed);
  std::chrono::milliseconds longest_release_timeout() const noexcept;

  const OpenOptions options_;
  const Routes routes_;
  const Sections sections_;
  const std::string digest_;  ///< config_digest(); empty without a file: no route is noted
  std::vector<Store::Setup> setups_;
  LockOrder lock_order_;
  std::shared_ptr<Reentry> reentry_;

  std::mutex cached_mutex_;                                  ///< not locked by a fork()ed child
  std::map<std::string, std::weak_ptr<CachedLock>> cached_;  ///< by their names
  std::size_t most_cached_ = 1024;  ///< above it, unused entries are removed

  std::mutex mutex_;  ///< for starting and closing; not locked by the child of a started engine
  std::atomic<bool> started_ = false;
  bool closed_ = false;
  std::atomic<unsigned> generation_;
  std::shared_ptr<LogLines> log_;
  std::unique_ptr<Runtime> runtime_;
};

template <class T, class Call>
asio::awaitable<void> Engine::answer(std::shared_ptr<Call> call, std::string name,
                                     Operation<T> operation) {
  runtime_->calls.add(call);
  std::exception_ptr error;
  std::optional<T> value;
  try {
    auto begun = operation(store(name));
    T got = co_await std::move(begun);
    value.emplace(std::move(got));
  } catch (...) {
    error = std::current_exception();
    end_if_out_of_memory(error);
  }
  runtime_->calls.remove(call);
  if (error) {
    call->fail(std::move(error));
  } else {
    call->answer(std::move(*value));
  }
}

template <class T>
T Engine::run_on(const std::string& name,
                 std::function<asio::awaitable<T>(std::shared_ptr<Store>)> operation) {
  const NoCancellation uncancelled;
  auto call = std::make_shared<Calls::Call<T>>();
  Driving::Intent intent;
  const auto failure = try_post([this, name, operation = std::move(operation), call]() mutable {
    spawn(env(), answer<T>(call, name, std::move(operation)));
  });
  if (failure.error) throw LockError(failure.error, {{}, name, failure.text});
  return call->wait(intent);
}

template <class T>
void Engine::start_on(const std::string& name,
                      std::function<asio::awaitable<T>(std::shared_ptr<Store>)> operation,
                      typename Calls::Told<T>::Done done) {
  auto call = std::make_shared<Calls::Told<T>>(done);
  const auto failure = try_post([this, name, operation = std::move(operation), call]() mutable {
    spawn(env(), answer<T>(call, name, std::move(operation)));
  });
  if (failure.error) done(failure.error, std::nullopt);
}

}  // namespace dlock::core
