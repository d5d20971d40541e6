// SPDX-License-Identifier: Apache-2.0
#include "migration/admin/session.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "dlock/options.hpp"

namespace dlock::core::migration {

Session::Session(Config config, OpenOptions options, std::string plan, Tell tell)
    : engine_(Engine::make(std::move(config), std::move(options))),
      plan_(std::move(plan)),
      tell_(std::move(tell)) {
  for (const auto& route : routes().all()) {
    if (!route.migrate || route.migrate->plan != plan_) continue;
    if (patterns_.empty()) migrate_ = *route.migrate;
    if (route.migrate->from != migrate_.from || route.migrate->to != migrate_.to) {
      throw LockError(
          make_error_code(errc::config_invalid),
          {{},
           {},
           fmt::format("{}: plan '{}' goes from '{}' to '{}' here and from '{}' to '{}' "
                       "elsewhere; give them two names",
                       route.origin.text(), plan_, route.migrate->from, route.migrate->to,
                       migrate_.from, migrate_.to)});
    }
    patterns_.push_back(route.match);
  }
  if (patterns_.empty()) {
    throw LockError(
        make_error_code(errc::config_invalid),
        {{},
         {},
         fmt::format("no entry of `locks:` has the plan '{}'; write for example `- {{ match: "
                     "\"billing/**\", migrate: {{ from: zk, to: redis, plan: {} }} }}`",
                     plan_, plan_)});
  }
}

Session::Stores Session::stores(std::shared_ptr<Store> from) const {
  Stores all{std::move(from), engine_->store(migrate_.to), nullptr};
  if (!migrate_.gate.empty()) all.gate = engine_->store(migrate_.gate);
  return all;
}

bool Session::stop() {
  const std::scoped_lock guard(mutex_);
  if (!stop_) return false;
  stopping_ = true;
  asio::post(engine_->env().executor(), stop_);
  return true;
}

void Session::begin(std::function<void()> stop) {
  const std::scoped_lock guard(mutex_);
  stop_ = std::move(stop);
}

void Session::stop_if_told() {
  const std::scoped_lock guard(mutex_);
  if (stopping_) stop_();
}

void Session::end() {
  const std::scoped_lock guard(mutex_);
  stop_ = nullptr;
  if (std::exchange(stopping_, false)) throw Stopped{};
}

void fail(const Failure& failure) {
  if (failure.error == errc::config_unsafe || failure.error == errc::not_supported ||
      failure.error == errc::protocol) {
    throw Refusal{failure.text.empty() ? failure.error.message() : failure.text};
  }
  throw LockError(failure.error, {{}, {}, failure.text});
}

TimePoint deadline_after(std::chrono::milliseconds wait, Env& env) {
  return wait == kWaitForever ? kNever : env.now() + wait;
}

asio::awaitable<Result<std::vector<End>>> look_at_ends(std::vector<std::shared_ptr<Store>> stores) {
  Result<std::vector<End>> result;
  std::vector<End> ends;
  for (const auto& store : stores) {
    result.failure = co_await store->connected();
    if (result.failure.error) {
      result.failure.text = fmt::format("the store '{}': {}", store->name(), result.failure.text);
      co_return result;
    }
    End end;
    end.name = store->name();
    end.capabilities = store->backend().capabilities();
    end.lease = store->setup().settings.lease;
    ends.push_back(std::move(end));
  }
  result.value = std::move(ends);
  co_return result;
}

}  // namespace dlock::core::migration
