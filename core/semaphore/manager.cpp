// SPDX-License-Identifier: Apache-2.0
//
// Semaphores of a manager. Permits are acquired as a lock is, by the same machines.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/manager/manager_impl.hpp"
#include "dlock/lock_status.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::inline v0 {
namespace {

using core::Engine;
using core::Store;

/// Re-enters nothing but itself.
class PermitsContext final : public detail::LockContext {
 public:
  explicit PermitsContext(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  core::Reentry& reentry() override { return reentry_; }
  asio::any_io_executor callback_executor() override { return engine_->callback_executor(); }

 private:
  const std::shared_ptr<Engine> engine_;
  core::Reentry reentry_;
};

/// A number of permits of one semaphore, on the store that its route names.
class PermitsLock final : public DistributedLock {
 public:
  PermitsLock(const std::shared_ptr<Engine>& engine, std::string name, Engine::Permits permits)
      : engine_(engine),
        name_(std::move(name)),
        route_(engine->route(name_)),
        permits_(permits),
        context_(engine) {}

  const std::string& name() const noexcept override { return name_; }
  const std::string& store() const noexcept override { return route_.store; }
  std::optional<std::chrono::milliseconds> default_wait() const noexcept override {
    return engine_->default_wait(route_);
  }
  detail::LockContext& context() const noexcept override { return context_; }
  detail::Canceller start_acquire(AcquireOptions options, detail::AcquireHandler handler) override {
    return engine_->start_acquire(name_, route_, options, std::move(handler), {}, permits_);
  }

 private:
  const std::shared_ptr<Engine> engine_;
  const std::string name_;
  const RouteConfig& route_;  ///< the engine's
  const Engine::Permits permits_;
  mutable PermitsContext context_;
};

[[noreturn]] void refuse(const std::string& semaphore, const std::string& store, std::string why) {
  throw LockError(make_error_code(errc::invalid_argument), {semaphore, store, std::move(why)});
}

void check_limit(const std::string& semaphore, std::uint32_t limit) {
  if (limit >= 1 && limit <= kMostPermits) return;
  refuse(semaphore, {}, fmt::format("{} permits: a semaphore has 1 to {}", limit, kMostPermits));
}

/// Where it is. Throws LockError{invalid_argument} if there can be none.
const RouteConfig& home_of_semaphore(const Engine& engine, const std::string& name) {
  const auto& route = engine.route(name);
  if (core::other_store(route) != nullptr) {
    refuse(name, route.store,
           "the route of this name has `migrate`, and a migration moves locks only; use a "
           "name with a separate route for the semaphore");
  }
  const auto& backend = *engine.setup_of(route.store).descriptor;
  if (!backend.has_permits) {
    refuse(name, route.store,
           fmt::format("{} store '{}' has no semaphores: {}; route this name to a store that has "
                       "them (`require: semaphore` says so at the start)",
                       backend.name, route.store, backend.why_no_permits));
  }
  return route;
}

asio::awaitable<Result<SemaphoreStatus>> inspect_permits(std::shared_ptr<Store> store,
                                                         std::string name) {
  Result<SemaphoreStatus> result;
  result.failure = co_await store->connected();
  if (!result.failure.error) result.failure = store->refused_permits();
  if (result.failure.error) co_return result;
  const auto deadline = core::operation_deadline(*store);
  result = co_await store->backend().inspect_semaphore(std::move(name), deadline);
  co_return result;
}

asio::awaitable<Failure> write_limit(std::shared_ptr<Store> store, std::string name,
                                     std::uint32_t limit) {
  auto failure = co_await store->connected();
  if (!failure.error) failure = store->refused_permits();
  if (failure.error) co_return failure;
  const auto deadline = core::operation_deadline(*store);
  failure = co_await store->backend().set_limit(std::move(name), limit, deadline);
  co_return failure;
}

asio::awaitable<Result<std::vector<SemaphoreStatus>>> list_permits(std::shared_ptr<Store> store,
                                                                   std::string prefix) {
  Result<std::vector<SemaphoreStatus>> result;
  result.failure = co_await store->connected();
  if (!result.failure.error && store->refused_permits().error) {
    result.failure.error = make_error_code(errc::not_supported);
  }
  if (result.failure.error) co_return result;
  const auto deadline = core::operation_deadline(*store);
  result = co_await store->backend().list_semaphores(std::move(prefix), deadline);
  co_return result;
}

core::Listed<SemaphoreStatus> all_semaphores(Engine& engine, const core::WantedNames& wanted) {
  core::Listed<SemaphoreStatus> listed;
  for (const auto& name : engine.store_names()) {
    if (!engine.setup_of(name).descriptor->has_permits) continue;
    auto result = engine.run_on<Result<std::vector<SemaphoreStatus>>>(
        name, [prefix = wanted.prefix()](std::shared_ptr<Store> at) {
          return list_permits(std::move(at), prefix);
        });
    const bool has_none = !result.value && portable(result.failure.error) == errc::not_supported;
    if (!has_none) listed.add(std::move(result), name, wanted);
  }
  return listed;
}

/// `token 7 (app on host)`, of each; the rest is counted.
std::string words_for(const std::vector<PermitHolder>& holders) {
  constexpr std::size_t kMostNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(holders.size(), kMostNamed); ++i) {
    const auto& owner = holders[i].owner;
    const auto& token = holders[i].token;
    text += fmt::format("{}token {} ({} {} on {}, id {})", text.empty() ? "" : ", ",
                        token.value_or(0), owner.app, pid_words(owner), owner.host, owner.id);
  }
  if (holders.size() > kMostNamed) text += fmt::format(", {} more", holders.size() - kMostNamed);
  return text;
}

asio::awaitable<EvictAnswer> evict_holder(std::shared_ptr<Store> store, EvictRequest request) {
  EvictAnswer answer;
  auto& failure = answer.failure;
  failure = store->refused_permits();
  if (failure.error) co_return answer;
  const auto deadline = core::operation_deadline(*store);
  answer = co_await store->backend().evict_permits(request, deadline);
  if (portable(failure.error) != errc::not_holder) co_return answer;
  const auto found = co_await store->backend().inspect_semaphore(request.name, deadline);
  if (found.value && !found.value->holders.empty()) {
    failure.text = fmt::format("no client holds permits with token {}; holders: {}", request.token,
                               words_for(found.value->holders));
  }
  co_return answer;
}

}  // namespace

Semaphore LockManager::semaphore(std::string name, std::optional<std::uint32_t> limit) {
  if (limit) check_limit(name, *limit);
  home_of_semaphore(*impl_->engine, name);
  auto permits = [engine = impl_->engine, name, limit](std::uint32_t count) {
    return std::make_shared<PermitsLock>(engine, name, Engine::Permits{count, limit.value_or(0)});
  };
  return Semaphore(std::move(name), limit, std::move(permits));
}

SemaphoreStatus LockManager::semaphore_status(const std::string& name) {
  const auto& store = home_of_semaphore(*impl_->engine, name).store;
  auto result = impl_->engine->run_on<Result<SemaphoreStatus>>(
      store, [name](std::shared_ptr<Store> at) { return inspect_permits(std::move(at), name); });
  if (!result.value) core::fail(result.failure, name, store);
  return std::move(*result.value);
}

void LockManager::set_semaphore(const std::string& name, std::uint32_t limit) {
  check_limit(name, limit);
  const auto& store = home_of_semaphore(*impl_->engine, name).store;
  const auto failure = impl_->engine->run_on<Failure>(
      store,
      [name, limit](std::shared_ptr<Store> at) { return write_limit(std::move(at), name, limit); });
  if (failure.error) core::fail(failure, name, store);
}

std::vector<SemaphoreStatus> LockManager::list_semaphores(const std::string& prefix) {
  auto listed = all_semaphores(*impl_->engine, core::WantedNames(prefix));
  listed.throw_failure();
  return std::move(listed.all);
}

std::vector<SemaphoreStatus> LockManager::list_semaphores(const std::string& prefix,
                                                          std::vector<LockError>& unread) {
  auto listed = all_semaphores(*impl_->engine, core::WantedNames(prefix));
  listed.tell_unread(unread);
  return std::move(listed.all);
}

Evicted LockManager::evict_permits(const std::string& name, std::uint64_t token,
                                   EvictOptions options, std::stop_token stop) {
  const auto& store = home_of_semaphore(*impl_->engine, name).store;
  return core::evict(*impl_->engine, store, {name, token}, options, evict_holder, stop);
}

}  // namespace dlock::inline v0
