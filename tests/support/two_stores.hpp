// SPDX-License-Identifier: Apache-2.0
//
// Two in-process stores S and T under virtual time, as one or several programs see them: for the
// rules of migrations, whose stores need not be real.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/memory/store.hpp"
#include "dlock/memory.hpp"
#include "dlock/spi/error.hpp"
#include "migration/ledger.hpp"
#include "migration/move/coordinator.hpp"
#include "migration/move/migrating_acquisition.hpp"
#include "tests/support/scripted_backend.hpp"

namespace dlock::tests {

/// The clock that several programs share.
using Programs = std::shared_ptr<VirtualHost>;

class TwoStores {
 public:
  /// What an acquire came to.
  struct Outcome {
    int times_told = 0;
    TimePoint at{};
    error_code ec;
    LockHandle handle;
    Diagnostics diagnostics;
    std::shared_ptr<core::migration::MigratingAcquisition> moving;
  };

  TwoStores() {
    static int number = 0;
    ++number;
    names_ = {"S" + std::to_string(number), "T" + std::to_string(number)};
    // They live as long as anybody has them open.
    server_s = memory::SharedStore::get(names_[0]);
    server_t = memory::SharedStore::get(names_[1]);
    s = make_store("s", names_[0]);
    t = make_store("t", names_[1]);
    plan.name = "p1";
    plan.id = "0123456789abcdef";
    plan.from = "s";
    plan.to = "t";
    plan.leased_target = false;
    plan.names = {"a", "b"};
    const auto text = core::migration::to_text(plan);
    server_s->set_note("plan/p1", "", text);
    server_t->set_note("plan/p1", "", text);
    server_s->set_note("plans-out", "", "p1");
    server_t->set_note("plans-in", "", "p1");
  }
  ~TwoStores() {
    for (const auto& store : {s, t}) {
      asio::co_spawn(env().executor(), store->close(), [](const std::exception_ptr&) {});
    }
    env().run_for(std::chrono::minutes(1));
  }
  TwoStores(const TwoStores&) = delete;
  TwoStores& operator=(const TwoStores&) = delete;

  VirtualEnv& env() { return host->virtual_env(); }

  /// Through the plan, as a route with `migrate` does.
  std::shared_ptr<Outcome> acquire(const std::string& name,
                                   std::optional<std::chrono::milliseconds> wait = std::nullopt) {
    auto outcome = std::make_shared<Outcome>();
    core::migration::MigratingAcquisition::Request request;
    request.source = request_for(name, wait);
    request.source.diagnostics = &outcome->diagnostics;
    request.target = request_for(name, wait);
    request.plan = plan.name;
    request.poll = std::chrono::seconds(1);
    request.stores = {"s", "t"};
    request.gate = gate;
    outcome->moving = core::migration::MigratingAcquisition::start(
        s, t, std::move(request), [this, outcome](error_code ec, LockHandle handle) {
          ++outcome->times_told;
          outcome->at = env().now();
          outcome->ec = ec;
          outcome->handle = std::move(handle);
        });
    return outcome;
  }

  /// In one store alone, as a plain route does.
  std::shared_ptr<Outcome> acquire_in(
      const std::shared_ptr<core::Store>& store, const std::string& name,
      std::optional<std::chrono::milliseconds> wait = std::nullopt) {
    auto outcome = std::make_shared<Outcome>();
    auto request = request_for(name, wait);
    request.diagnostics = &outcome->diagnostics;
    store->acquire(std::make_shared<core::Acquisition>(
        store, request, [this, outcome](error_code ec, LockHandle handle) {
          ++outcome->times_told;
          outcome->at = env().now();
          outcome->ec = ec;
          outcome->handle = std::move(handle);
        }));
    return outcome;
  }

  std::shared_ptr<core::migration::Coordinator> coordinator(
      core::migration::Coordinator::Options options = {}) {
    return std::make_shared<core::migration::Coordinator>(s, t, plan, options);
  }

  /// One step towards a goal, as an operator's command takes it; what it came to is there when time
  /// has passed.
  std::shared_ptr<std::optional<core::migration::StepReport>> take(
      core::migration::Goal goal, const std::string& name,
      const std::shared_ptr<core::migration::Coordinator>& by) {
    auto result = std::make_shared<std::optional<core::migration::StepReport>>();
    asio::co_spawn(env().executor(), by->take(goal, name),
                   [result, by](const std::exception_ptr&, core::migration::StepReport report) {
                     *result = std::move(report);
                   });
    return result;
  }
  core::migration::StepReport take_now(core::migration::Goal goal, const std::string& name) {
    auto result = take(goal, name, coordinator());
    env().run_for(std::chrono::milliseconds(10));
    return result->value_or(core::migration::StepReport{});
  }

  /// Runs a coroutine of the core to its end.
  template <class T>
  T run(asio::awaitable<T> work) {
    auto result = std::make_shared<std::optional<T>>();
    asio::co_spawn(env().executor(), std::move(work),
                   [result](const std::exception_ptr&, T value) { *result = std::move(value); });
    env().run_for(std::chrono::milliseconds(10));
    return std::move(result->value());
  }

  /// What stands in S in the lock's place.
  std::optional<core::migration::Record> record(const std::string& name) {
    return core::migration::parse_record(server_s->record(name));
  }
  void set_record(const std::string& name, const core::migration::Record& record) {
    server_s->set_record(name, server_s->record(name), core::migration::to_text(record), 0);
  }

  std::shared_ptr<core::Store> make_store(const std::string& name, const std::string& server) {
    core::Store::Setup setup;
    setup.options.name = name;
    setup.options.endpoints = {{server, 0}};
    setup.descriptor = &memory::backend();
    return std::make_shared<core::Store>(*host, std::move(setup));
  }
  const std::string& server_name_t() const { return names_[1]; }

  Programs host = std::make_shared<VirtualHost>();
  std::shared_ptr<memory::SharedStore> server_s;
  std::shared_ptr<memory::SharedStore> server_t;
  std::shared_ptr<core::Store> s;
  std::shared_ptr<core::Store> t;
  core::migration::Plan plan;
  std::shared_ptr<core::migration::GateBelief> gate =
      std::make_shared<core::migration::GateBelief>("p1");

 private:
  core::Acquisition::Request request_for(const std::string& name,
                                         std::optional<std::chrono::milliseconds> wait) {
    core::Acquisition::Request request;
    request.name = name;
    request.limits.once = wait && wait->count() == 0;
    if (wait && !request.limits.once) request.limits.deadline = env().now() + *wait;
    request.limits.connect_timeout = std::chrono::seconds(15);
    return request;
  }

  std::vector<std::string> names_;
};

/// The store that it was granted by.
inline std::string where(const LockHandle& handle) { return handle ? handle.store() : "nowhere"; }

/// Of a claim that a test makes by itself.
inline Owner owner(const std::string& id) {
  Owner made;
  made.id = id;
  made.pid = 4711;
  made.host = "h";
  made.app = "worker";
  return made;
}

}  // namespace dlock::tests
