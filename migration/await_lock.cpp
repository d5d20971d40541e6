// SPDX-License-Identifier: Apache-2.0
#include "migration/await_lock.hpp"

#include "dlock/spi/signal.hpp"

namespace dlock::core::migration {

asio::awaitable<LockedFor> await_lock(
    std::shared_ptr<Store> store, Acquisition::Request request,
    std::function<void(const std::shared_ptr<Acquisition>&)> started) {
  OneShot<std::shared_ptr<LockedFor>> outcome(store->env());
  const auto acquisition = std::make_shared<Acquisition>(
      store, std::move(request), [outcome](error_code ec, LockHandle handle) {
        auto told = std::make_shared<LockedFor>();
        told->error = ec;
        told->handle = std::move(handle);
        outcome.set(std::move(told));
      });
  if (started) started(acquisition);
  store->acquire(acquisition);
  const auto told = co_await outcome.get_until(kNever);
  if ((*told)->error) {
    (*told)->failure = acquisition->failure();
    (*told)->record = acquisition->record();
    (*told)->gate = acquisition->gate();
  }
  co_return std::move(**told);
}

Acquisition::Request one_try(Store& store, std::string name) {
  Acquisition::Request request;
  request.name = std::move(name);
  request.limits.once = true;
  request.limits.connect_timeout = store.setup().settings.connect_timeout;
  request.limits.retry = store.setup().settings.retry;
  return request;
}

}  // namespace dlock::core::migration
