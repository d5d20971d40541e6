// SPDX-License-Identifier: Apache-2.0
//
// Drives a local store without the core: a loop that runs until an answer is there. For the tests
// of the backend alone, and for the peer processes of these tests.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/loop/real_env.hpp"
#include "dlock/local.hpp"
#include "dlock/spi/descriptor.hpp"
#include "dlock/spi/env.hpp"
#include "dlock/spi/event_sink.hpp"
#include "dlock/spi/options.hpp"

namespace dlock::local::test {

using namespace std::chrono_literals;  // NOLINT: a header of tests only

class RecordingSink final : public EventSink {
 public:
  void on_link_up() override {}
  void on_link_down(const Failure&) override {}
  void on_session_gone(LossReason) override {}
  void on_claim_gone(const ClaimPtr& claim, LossReason why) override {
    gone.emplace_back(claim, why);
  }
  void on_capabilities_changed() override {}
  void on_warning(std::string_view text) override { warnings.emplace_back(text); }

  std::vector<std::pair<ClaimPtr, LossReason>> gone;
  std::vector<std::string> warnings;
};

class Store {
 public:
  explicit Store(const std::string& path, const std::string& mode = {}) {
    StoreOptions options;
    options.name = "test";
    options.path = path;
    options.number["trust_filesystem"] = 0;
    if (!mode.empty()) options.text["mode"] = mode;
    backend = local::backend().create(options, env, sink);
  }
  ~Store() { run(backend->close(soon())); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  static TimePoint in(Duration duration) { return BoottimeClock::now() + duration; }
  static TimePoint soon() { return in(30s); }

  /// Runs the loop until the coroutine has ended.
  template <class T>
  T run(asio::awaitable<T> task) {
    std::optional<T> result;
    start(std::move(task), result);
    run_until([&] { return result.has_value(); });
    return std::move(*result);
  }
  void run(asio::awaitable<void> task) {
    bool done = false;
    asio::co_spawn(env.executor(), std::move(task), [&done](const std::exception_ptr& error) {
      if (error) std::rethrow_exception(error);
      done = true;
    });
    run_until([&] { return done; });
  }
  /// Sets `result` when it has ended; run_until() drives it.
  template <class T>
  void start(asio::awaitable<T> task, std::optional<T>& result) {
    asio::co_spawn(env.executor(), std::move(task),
                   [&result](const std::exception_ptr& error, T value) {
                     if (error) std::rethrow_exception(error);
                     result = std::move(value);
                   });
  }
  template <class Predicate>
  bool run_until(Predicate predicate, Duration patience = 60s) {
    const auto deadline = in(patience);
    while (!predicate()) {
      if (BoottimeClock::now() > deadline) return false;
      env.context().restart();
      env.context().run_one_for(50ms);
    }
    return true;
  }

  Failure connect() { return run(backend->connect(soon())); }

  ClaimPtr make(const std::string& name, bool queue = true, std::uint64_t min_token = 0,
                Mode mode = Mode::exclusive) {
    ClaimRequest request;
    request.name = name;
    request.mode = mode;
    request.queue = queue;
    request.min_token = min_token;
    request.owner = Owner{make_uuid(env), "host", 1234, "test"};
    return backend->make_claim(std::move(request));
  }
  ClaimAnswer ask(const ClaimPtr& claim) { return run(backend->claim(claim, soon())); }
  ReleaseStatus release(const ClaimPtr& claim) {
    return run(backend->release(claim, false, soon())).status;
  }
  /// As the core does: claim, and wait and claim again until it is granted or refused.
  asio::awaitable<ClaimAnswer> acquire(ClaimPtr claim, TimePoint deadline) {
    for (;;) {
      auto answer = co_await backend->claim(claim, soon());
      const bool again =
          answer.status == ClaimStatus::waiting || answer.status == ClaimStatus::busy;
      if (!again || env.now() >= deadline) co_return answer;
      co_await backend->wait(claim, deadline);
    }
  }
  LockStatus status(const std::string& name) {
    auto result = run(backend->inspect(name, soon()));
    return result.value ? std::move(*result.value) : LockStatus{};
  }

  core::RealEnv env;
  RecordingSink sink;
  std::unique_ptr<Backend> backend;
};

}  // namespace dlock::local::test
