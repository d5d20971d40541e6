// SPDX-License-Identifier: Apache-2.0
//
// A program's connections to in-process stores under virtual time, and the hands to move that: what
// tests of migrations stand on, in either mode.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backends/memory/store.hpp"
#include "dlock/memory.hpp"
#include "tests/support/scripted_backend.hpp"

namespace dlock::tests {

/// What an acquire came to.
struct Outcome {
  int times_told = 0;
  TimePoint at{};
  error_code ec;
  LockHandle handle;
  Diagnostics diagnostics;
};

class MemoryStores {
 public:
  MemoryStores(const MemoryStores&) = delete;
  MemoryStores& operator=(const MemoryStores&) = delete;

  VirtualEnv& env() { return host->virtual_env(); }
  void run_for(Duration time) { env().run_for(time); }

  std::shared_ptr<core::Store> make_store(const std::string& name, const std::string& server) {
    core::Store::Setup setup;
    setup.options.name = name;
    setup.options.endpoints = {{server, 0}};
    setup.descriptor = &memory::backend();
    return std::make_shared<core::Store>(*host, std::move(setup));
  }
  /// It has closed when time has passed.
  void close(const std::shared_ptr<core::Store>& store) {
    asio::co_spawn(env().executor(), store->close(), [](const std::exception_ptr&) {});
  }

  /// What the coroutine comes to is there when time has passed; `of` lives until then.
  template <class T>
  std::shared_ptr<std::optional<T>> begin(asio::awaitable<T> work,
                                          std::shared_ptr<void> of = nullptr) {
    auto result = std::make_shared<std::optional<T>>();
    asio::co_spawn(env().executor(), std::move(work),
                   [result, of = std::move(of)](const std::exception_ptr&, T value) {
                     *result = std::move(value);
                   });
    return result;
  }
  /// Runs it to its end, or for so long.
  template <class T>
  T run(asio::awaitable<T> work, Duration most = std::chrono::seconds(1)) {
    const auto result = begin(std::move(work));
    const auto end = env().now() + most;
    while (!*result && env().now() < end) run_for(std::chrono::milliseconds(5));
    return std::move(result->value());
  }

  /// And what follows from it has happened.
  void let_go(Outcome& outcome) {
    outcome.handle = LockHandle();
    run_for(std::chrono::milliseconds(10));
  }

  std::shared_ptr<VirtualHost> host = std::make_shared<VirtualHost>();

 protected:
  MemoryStores() = default;
  ~MemoryStores() = default;
};

/// Writes down there what it is told.
template <class T>
detail::AcquireHandler write_down(VirtualEnv& env, const std::shared_ptr<T>& outcome) {
  return [&env, outcome](error_code ec, LockHandle handle) {
    ++outcome->times_told;
    outcome->at = env.now();
    outcome->ec = ec;
    outcome->handle = std::move(handle);
  };
}

/// How long somebody waits, as a caller says it.
inline core::AcquireFsm::Limits limits_of(Env& env, std::optional<std::chrono::milliseconds> wait) {
  core::AcquireFsm::Limits limits;
  limits.once = wait && wait->count() == 0;
  if (wait && !limits.once) limits.deadline = env.now() + *wait;
  limits.connect_timeout = std::chrono::seconds(15);
  return limits;
}

}  // namespace dlock::tests
