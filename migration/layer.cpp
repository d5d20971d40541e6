// SPDX-License-Identifier: Apache-2.0
//
// What the core asks of the layer above it: a policy for each store, and a strategy for each route
// that a plan has. Both are linked, not included: the core knows no plan.
#include <map>
#include <utility>
#include <vector>

#include "core/manager/engine.hpp"
#include "core/manager/strategy.hpp"
#include "migration/leased/leased_acquisition.hpp"
#include "migration/move/home.hpp"
#include "migration/move/migrating_acquisition.hpp"
#include "migration/policy/target_guard.hpp"

namespace dlock::core {
namespace migration {
namespace {

/// What cancels an acquisition for as long as it is under way.
template <class Started>
std::function<void()> canceller(const std::shared_ptr<Started>& acquisition) {
  return [underway = std::weak_ptr(acquisition)] {
    if (const auto found = underway.lock()) found->cancel();
  };
}

class MoveStrategy final : public Strategy {
 public:
  MoveStrategy(Engine& engine, MigrateConfig migrate, std::shared_ptr<GateBelief> gate)
      : engine_(engine), migrate_(std::move(migrate)), gate_(std::move(gate)) {}

  std::function<void()> start(Acquisition::Request asked,
                              std::shared_ptr<detail::AcquireHandler> handler) override {
    MigratingAcquisition::Request request;
    request.target = engine_.at(migrate_.to, asked);
    request.source = std::move(asked);
    request.plan = migrate_.plan;
    request.poll = migrate_.poll;
    request.stores = engine_.store_names();
    request.gate = gate_;
    return canceller(MigratingAcquisition::start(engine_.store(migrate_.from),
                                                 engine_.store(migrate_.to), std::move(request),
                                                 once(std::move(handler))));
  }
  asio::awaitable<Result<std::string>> home(std::string name) override {
    Result<std::string> home;
    const auto moved = co_await has_moved(engine_.store(migrate_.from), std::move(name));
    home.failure = moved.failure;
    if (moved.value) home.value = *moved.value ? migrate_.to : migrate_.from;
    co_return home;
  }

 private:
  Engine& engine_;
  const MigrateConfig migrate_;
  const std::shared_ptr<GateBelief> gate_;
};

class LeasedStrategy final : public Strategy {
 public:
  LeasedStrategy(Engine& engine, MigrateConfig migrate, std::shared_ptr<GateReader> reader)
      : engine_(engine), migrate_(std::move(migrate)), reader_(std::move(reader)) {}

  std::function<void()> start(Acquisition::Request asked,
                              std::shared_ptr<detail::AcquireHandler> handler) override {
    LeasedHold::Requests requests;
    requests.reader = reader_;
    requests.target = engine_.at(migrate_.to, asked);
    requests.source = std::move(asked);
    return canceller(LeasedAcquisition::start(std::move(requests), once(std::move(handler))));
  }
  asio::awaitable<Result<std::string>> home(std::string) override {
    Result<std::string> home;
    const auto answer = co_await reader_->reading();
    home.failure = answer.failure;
    if (answer.reading) {
      home.value = is_source_first(answer.reading->gate.state) ? migrate_.from : migrate_.to;
    }
    co_return home;
  }

 private:
  Engine& engine_;
  const MigrateConfig migrate_;
  const std::shared_ptr<GateReader> reader_;
};

class MigrationStrategies final : public Strategies {
 public:
  explicit MigrationStrategies(Engine& engine) : engine_(engine) {}

  std::unique_ptr<Strategy> make(const RouteConfig& route) override {
    const auto& migrate = *route.migrate;
    if (!migrate.gate.empty()) {
      return std::make_unique<LeasedStrategy>(engine_, migrate, reader(migrate));
    }
    auto& gate = gates_[{migrate.plan, migrate.from}];
    if (!gate) gate = std::make_shared<GateBelief>(migrate.plan);
    return std::make_unique<MoveStrategy>(engine_, migrate, gate);
  }

 private:
  std::shared_ptr<GateReader> reader(const MigrateConfig& migrate) {
    auto& known = readers_[{migrate.plan, migrate.from, migrate.to, migrate.gate}];
    if (!known) {
      LeasedStores stores{engine_.store(migrate.from), engine_.store(migrate.to),
                          engine_.store(migrate.gate)};
      known = std::make_shared<GateReader>(std::move(stores), migrate.plan);
    }
    return known;
  }

  Engine& engine_;
  /// By plan and stores.
  std::map<std::vector<std::string>, std::shared_ptr<GateReader>> readers_;
  /// By plan and source.
  std::map<std::vector<std::string>, std::shared_ptr<GateBelief>> gates_;
};

}  // namespace
}  // namespace migration

std::unique_ptr<StorePolicy> make_store_policy(Store& store) {
  return std::make_unique<migration::TargetGuard>(store);
}

std::unique_ptr<Strategies> make_strategies(Engine& engine) {
  return std::make_unique<migration::MigrationStrategies>(engine);
}

}  // namespace dlock::core
