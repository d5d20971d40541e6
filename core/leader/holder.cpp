// SPDX-License-Identifier: Apache-2.0
#include "core/leader/holder.hpp"

#include <utility>

#include "core/manager/engine.hpp"
#include "core/manager/manager_impl.hpp"

namespace dlock::core {
namespace {

/// Reads the status from the store that the lock is in, if it is being moved.
asio::awaitable<Result<LockStatus>> look_where_it_is(Engine& engine, const RouteConfig& route,
                                                     std::string name,
                                                     std::shared_ptr<Store> store) {
  Result<LockStatus> result;
  if (other_store(route) != nullptr) {
    auto home = co_await engine.strategy(route)->home(name);
    result.failure = std::move(home.failure);
    if (!home.value) co_return result;
    store = engine.store(*home.value);
  }
  result.failure = co_await store->connected();
  if (result.failure.error) co_return result;
  const auto deadline = operation_deadline(*store);
  result = co_await store->backend().inspect(std::move(name), deadline);
  co_return result;
}

Look look_of(Result<LockStatus> result) {
  Look look;
  look.error = result.failure.error;
  if (!result.value) return look;
  look.error = {};
  if (result.value->held) look.holder = std::move(result.value->owner).value_or(Owner{});
  return look;
}

/// The store of a route that is not moved just now: there watches are set.
void on_store_of(Engine& engine, const std::string& name, std::function<void(Store&)> work) {
  const auto& route = engine.route(name);
  if (other_store(route) != nullptr) return;
  engine.post([&engine, &route, work = std::move(work)] {
    if (const auto store = engine.store(route.store)) work(*store);
  });
}

}  // namespace

void look_at_holder(Engine& engine, const std::string& name, LookDone done) {
  const auto& route = engine.route(name);
  engine.start_on<Result<LockStatus>>(
      route.store,
      [&engine, &route, name](std::shared_ptr<Store> store) {
        return look_where_it_is(engine, route, name, std::move(store));
      },
      [done = std::move(done)](error_code ec, std::optional<Result<LockStatus>> result) {
        done(result ? look_of(std::move(*result)) : Look{ec, std::nullopt});
      });
}

void watch_holder(Engine& engine, const std::string& name, ObserverId observer) {
  on_store_of(engine, name, [name, observer](Store& store) {
    store.watch_holder(name, observer, [observer] { look_now(observer); });
  });
}

void unwatch_holder(Engine& engine, const std::string& name, ObserverId observer) {
  on_store_of(engine, name,
              [name, observer](Store& store) { store.unwatch_holder(name, observer); });
}

void tell_holder_changed(Engine& engine, const std::string& name) {
  on_store_of(engine, name, [name](Store& store) { store.tell_holder_changed(name); });
}

}  // namespace dlock::core
