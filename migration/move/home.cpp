// SPDX-License-Identifier: Apache-2.0
#include "migration/move/home.hpp"

#include "dlock/spi/error.hpp"

namespace dlock::core::migration {

asio::awaitable<Result<bool>> has_moved(std::shared_ptr<Store> source, std::string name) {
  Result<bool> result;
  result.failure = co_await source->connected();
  if (result.failure.error) co_return result;
  const auto deadline = source->env().now() + source->request_timeout();
  const auto answer = co_await source->backend().migration().record(std::move(name), deadline);
  if (answer.status == RecordStatus::done) {
    result.value = answer.found.has_value();
  } else if (answer.status == RecordStatus::failed &&
             portable(answer.failure.error) == errc::not_supported) {
    result.value = false;  // such a store has no records
  } else {
    result.failure = answer.failure;
  }
  co_return result;
}

}  // namespace dlock::core::migration
