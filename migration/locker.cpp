// SPDX-License-Identifier: Apache-2.0
#include "migration/locker.hpp"

#include <fmt/format.h>

#include "dlock/spi/error.hpp"

namespace dlock::core::migration {

void Locker::stop() {
  stopped_ = true;
  for (const auto& acquisition : std::set(locking_)) acquisition->cancel();
  for (const auto& pause : std::set(pauses_)) pause->notify();
}

asio::awaitable<LockedFor> Locker::lock(std::shared_ptr<Store> store,
                                        Acquisition::Request request) {
  LockedFor locked;
  if (stopped_) {
    locked.error = make_error_code(errc::cancelled);
    co_return locked;
  }
  std::shared_ptr<Acquisition> acquisition;
  const auto started = [&](const std::shared_ptr<Acquisition>& underway) {
    acquisition = underway;
    locking_.insert(underway);
  };
  locked = co_await await_lock(std::move(store), std::move(request), started);
  locking_.erase(acquisition);
  co_return locked;
}

asio::awaitable<StepReport> Locker::not_locked(std::shared_ptr<Store> store, std::string name,
                                               LockedFor locked) {
  if (stopped_ || locked.error == errc::cancelled || locked.error == errc::closed) {
    co_return report_of(name, Verdict::stopped, "stopped");
  }
  if (locked.error != errc::timed_out) {
    co_return failure_report(name, locked.error != errc::unavailable, store->name(), locked.error,
                             locked.failure);
  }
  const auto found =
      co_await store->backend().inspect(name, store->env().now() + store->request_timeout());
  auto report = report_of(name, Verdict::waiting, "");
  if (found.value && found.value->owner) report.holder = describe(*found.value->owner);
  report.text = fmt::format("waits for its holder in the store '{}'{}{}", store->name(),
                            report.holder.empty() ? "" : ": ", report.holder);
  co_return report;
}

asio::awaitable<bool> Locker::pause(Env& env, Duration time) {
  if (stopped_) co_return false;
  const auto signal = std::make_shared<Signal>(env);
  pauses_.insert(signal);
  co_await signal->wait_until(env.now() + time);
  pauses_.erase(signal);
  co_return !stopped_;
}

}  // namespace dlock::core::migration
