// SPDX-License-Identifier: Apache-2.0
//
// A simulated store and a few programs that use it, for a chosen course of events.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/store/cached_lock.hpp"
#include "core/store/hold.hpp"
#include "tests/simulation/host.hpp"
#include "tests/simulation/sim_store.hpp"

namespace dlock::simulation {

/// What became of one acquire.
struct Attempt {
  bool told = false;
  TimePoint at{};
  error_code ec;
  LockHandle handle;
  std::optional<TimePoint> lost_at;
  LossReason reason = LossReason::none;
  std::weak_ptr<core::Acquisition> acquisition;

  bool is(HandleState state) const { return told && !ec && handle && handle.state() == state; }
  bool held() const { return is(HandleState::held); }
  bool lost() const { return is(HandleState::lost); }
};
using AttemptPtr = std::shared_ptr<Attempt>;

/// A process with a store of its own.
class Program {
 public:
  Program(World& world, SimStore& kind, std::string name)
      : process(world, std::move(name), {}),
        host(std::make_shared<SimHost>(process)),
        store(make_store(host, kind)) {}

  AttemptPtr acquire(const std::string& lock, std::optional<milliseconds> wait = std::nullopt,
                     std::uint64_t min_token = 0, Mode mode = Mode::exclusive) {
    core::Acquisition::Request request;
    request.name = lock;
    request.mode = mode;
    request.min_token = min_token;
    request.limits.once = wait && wait->count() == 0;
    if (wait && !request.limits.once) request.limits.deadline = process.now() + *wait;
    request.limits.connect_timeout = store->setup().settings.connect_timeout;
    request.limits.retry = store->setup().settings.retry;
    return start(std::move(request));
  }
  AttemptPtr start(core::Acquisition::Request request) {
    auto attempt = std::make_shared<Attempt>();
    detail::AcquireHandler told = [this, attempt](error_code ec, LockHandle handle) {
      attempt->told = true;
      attempt->at = process.world().now();
      attempt->ec = ec;
      attempt->handle = std::move(handle);
      if (!ec) watch(attempt);
    };
    last = attempt;
    if (cached) {
      process.deliver(
          [this, request, told = std::make_shared<detail::AcquireHandler>(std::move(told))] {
            cached->acquire(store, request, told);
          });
      return attempt;
    }
    auto acquisition = std::make_shared<core::Acquisition>(store, request, std::move(told));
    attempt->acquisition = acquisition;
    process.deliver([this, acquisition] { store->acquire(acquisition); });
    return attempt;
  }
  AttemptPtr read(const std::string& lock) { return acquire(lock, {}, 0, Mode::shared); }
  void cancel(const Attempt& attempt) {
    process.deliver([weak = attempt.acquisition] {
      if (const auto acquisition = weak.lock()) acquisition->cancel();
    });
  }
  void release(const AttemptPtr& attempt) {
    process.deliver([attempt] { attempt->handle = LockHandle(); });
  }
  /// Gives the last one back.
  void release() { release(last); }

  Process process;
  std::shared_ptr<SimHost> host;
  std::shared_ptr<core::Store> store;
  /// Its one lock stays, if it is set; null: none does.
  std::shared_ptr<core::CachedLock> cached;
  AttemptPtr last;

 private:
  void watch(const AttemptPtr& attempt) {
    attempt->handle.on_state(
        [this, weak = std::weak_ptr(attempt)](HandleState state, LossReason why) {
          const auto attempt = weak.lock();
          if (!attempt || state != HandleState::lost || attempt->lost_at) return;
          attempt->lost_at = process.world().now();
          attempt->reason = why;
        });
  }
};

/// Quiet unless somebody makes something go wrong.
template <class Store>
class Bench {
 public:
  template <class... Settings>
  explicit Bench(std::uint64_t seed, Settings&&... settings)
      : world(seed, true),
        network(world),
        store(world, network, std::forward<Settings>(settings)...) {}
  // A store that is not closed keeps what waits in it for ever.
  ~Bench() {
    store.on_forgotten = [](const std::string&, const std::string&, Fault) {};
    for (const auto& [name, program] : programs_) {
      if (program->last) program->last.reset();
      if (program->process.is_paused()) program->process.resume();
      asio::co_spawn(program->process.executor(), program->store->close(), asio::detached);
    }
    run(seconds(60));
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Program& program(const std::string& name) {
    auto& place = programs_[name];
    if (!place) place = std::make_unique<Program>(world, store, name);
    return *place;
  }
  void run(Duration time) { world.run_until(world.now() + time); }
  template <class Predicate>
  bool run_until(Predicate done, Duration time = seconds(60)) {
    const auto end = world.now() + time;
    while (!done() && world.now() < end) run(microseconds(500));
    return done();
  }
  bool granted(const AttemptPtr& attempt, Duration time = seconds(60)) {
    return run_until([&] { return attempt->told; }, time) && !attempt->ec;
  }
  /// It has had the lock and given it back, and so is connected. False: it did not get it.
  bool warm_up(Program& program, const std::string& lock, Duration rest = seconds(1)) {
    const auto attempt = program.acquire(lock);
    if (!granted(attempt)) return false;
    program.release(attempt);
    run(rest);
    return true;
  }
  /// The same, at moments that do not depend on when it got it.
  Program& connected(const std::string& name, const std::string& lock) {
    auto& one = program(name);
    one.acquire(lock);
    run(seconds(1));
    one.release();
    run(seconds(1));
    return one;
  }
  /// It has the lock by now, unless that is another's.
  Program& holder(const std::string& name, const std::string& lock) {
    auto& one = program(name);
    one.acquire(lock);
    run(milliseconds(100));
    return one;
  }

  World world;
  Network network;
  Store store;

 private:
  std::map<std::string, std::unique_ptr<Program>> programs_;
};

}  // namespace dlock::simulation
