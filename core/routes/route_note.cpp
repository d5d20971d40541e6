// SPDX-License-Identifier: Apache-2.0
#include "core/routes/route_note.hpp"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <utility>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::core {

namespace {

constexpr int kTries = 3;

asio::awaitable<RecordAnswer> read_note(Store& store) {
  const auto until = store.env().now() + store.request_timeout();
  std::string key = kRouteUsesKey;
  auto answer = co_await store.backend().migration().note(std::move(key), until);
  co_return answer;
}

asio::awaitable<RecordAnswer> replace_note(Store& store, std::optional<std::string> from,
                                           std::optional<std::string> to) {
  const auto until = store.env().now() + store.request_timeout();
  std::string key = kRouteUsesKey;
  auto answer = co_await store.backend().migration().set_note(std::move(key), std::move(from),
                                                              std::move(to), until);
  co_return answer;
}

}  // namespace

bool keeps_route_note(Store& store) { return store.backend().capabilities().can_gate; }

asio::awaitable<void> add_route_use(std::shared_ptr<Store> store, RouteUse use) {
  try {
    const auto& me = store->me();
    use.who = fmt::format("{} ({}) on {}", me.app, pid_words_for_others(me), me.host);
    use.since = std::chrono::milliseconds(store->env().wall_clock_ms());
    use.last = use.since;
    auto answer = co_await read_note(*store);
    for (int tries = 0; tries < kTries; ++tries) {
      const bool is_known =
          answer.status == RecordStatus::done || answer.status == RecordStatus::conflict;
      if (!is_known) co_return;
      auto from = std::move(answer.found);
      auto to = with_route_use(from.value_or(std::string()), use);
      if (!to) co_return;
      answer = co_await replace_note(*store, std::move(from), std::move(to));
      if (answer.status == RecordStatus::done) co_return;
    }
  } catch (const std::exception& error) {
    end_if_out_of_memory(error);  // else only the note is missing
  }
}

asio::awaitable<Result<std::string>> read_route_note(std::shared_ptr<Store> store) {
  Result<std::string> result;
  result.failure = co_await store->connected();
  if (result.failure.error) co_return result;
  result.value.emplace();
  if (!keeps_route_note(*store)) co_return result;
  auto answer = co_await read_note(*store);
  if (answer.status == RecordStatus::done) {
    result.value = std::move(answer.found).value_or(std::string());
  } else {
    result.value.reset();
    result.failure = std::move(answer.failure);
  }
  co_return result;
}

}  // namespace dlock::core
