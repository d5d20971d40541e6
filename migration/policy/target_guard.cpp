// SPDX-License-Identifier: Apache-2.0
#include "migration/policy/target_guard.hpp"

#include <algorithm>
#include <utility>

#include "core/store/store.hpp"
#include "dlock/spi/error.hpp"
#include "migration/gate.hpp"
#include "migration/policy/sealed.hpp"
#include "migration/record.hpp"

namespace dlock::core::migration {

TargetGuard& TargetGuard::of(Store& store) { return static_cast<TargetGuard&>(store.policy()); }

TargetGuard::TargetGuard(Store& store) : store_(store), plans_(store.env(), store.backend()) {}

asio::awaitable<void> TargetGuard::on_connected() { co_await read(); }

bool TargetGuard::is_admitted(std::string_view name) const {
  return !plans_.are_old() && !plans_.admit(name, store_.name()).error;
}

asio::awaitable<ClaimPolicy::Admission> TargetGuard::admit(std::string name) {
  Admission admission;
  auto& failure = admission.failure;
  if (!plans_.were_read()) failure = co_await read();
  if (failure.error) co_return admission;
  if (plans_.are_old()) {
    admission.is_provisional = true;
    read_meanwhile();
  }
  failure = plans_.admit(name, store_.name());
  if (!failure.error) co_return admission;
  // Nobody is refused for what was so some time ago.
  failure = co_await read();
  if (!failure.error) failure = plans_.admit(name, store_.name());
  co_return admission;
}

// The reading is on its way since the claim, so it seldom takes longer than that.
asio::awaitable<ClaimPolicy::Confirmation> TargetGuard::confirm(
    std::string name, std::optional<std::uint64_t> token) {
  Confirmation confirmation;
  while (is_reading_) {
    auto waiter = std::make_shared<Signal>(store_.env());
    waiters_.push_back(waiter);
    co_await waiter->wait_until(kNever);
  }
  auto& failure = confirmation.failure;
  if (plans_.are_old()) failure = co_await read();
  if (!failure.error) failure = plans_.admit(name, store_.name());
  confirmation.is_stale = token && *token <= plans_.floor(name);
  co_return confirmation;
}

void TargetGuard::prepare(ClaimRequest& request) const {
  request.min_token = std::max(request.min_token, plans_.floor(request.name));
}

asio::awaitable<bool> TargetGuard::open(std::string name, std::string record) {
  const bool opened = co_await open_by_plans(std::move(name), record);
  if (!opened) co_await read_gate(std::move(record));
  co_return opened;
}

asio::awaitable<bool> TargetGuard::open_by_plans(std::string name, std::string record) {
  bool opened = co_await open_left(name, record);
  if (opened) co_return true;
  // Nobody is refused for what was so some time ago.
  const auto failure = co_await read();
  if (!failure.error) opened = co_await open_left(std::move(name), std::move(record));
  co_return opened;
}

Failure TargetGuard::sealed(std::string_view record, std::string_view name) const {
  const auto parsed = parse_record(record);
  const bool is_finished = parsed && finished_.contains(parsed->plan_id);
  return sealed_failure(record, name, store_.name(), is_finished);
}

// A plan's end leaves the records in its source as they are.
asio::awaitable<void> TargetGuard::read_gate(std::string record) {
  const auto parsed = parse_record(record);
  if (!parsed || finished_.contains(parsed->plan_id)) co_return;
  const auto deadline = store_.env().now() + store_.request_timeout();
  const auto answer = co_await store_.backend().migration().note(gate_key(parsed->plan), deadline);
  if (answer.status != RecordStatus::done || !answer.found) co_return;
  const auto gate = parse_gate(*answer.found);
  const bool is_finished =
      gate && gate->state == GateState::final_ && gate->plan_id == parsed->plan_id;
  if (is_finished) finished_.insert(parsed->plan_id);
}

asio::awaitable<Failure> TargetGuard::check_plan(std::string plan, std::string id) {
  auto failure = co_await plans_.check_id(std::move(plan), std::move(id), store_.name(),
                                          store_.env().now() + store_.request_timeout());
  co_return failure;
}

asio::awaitable<bool> TargetGuard::open_left(std::string name, std::string record) {
  const auto floor = plans_.opens(name, record);
  if (!floor) co_return false;
  const auto answer = co_await store_.backend().migration().set_record(
      std::move(name), std::move(record), std::nullopt, *floor,
      store_.env().now() + store_.request_timeout());
  co_return answer.status == RecordStatus::done || answer.status == RecordStatus::conflict;
}

asio::awaitable<Result<bool>> TargetGuard::is_left_closed(std::string name, std::string record) {
  Result<bool> result;
  if (!plans_.were_read()) result.failure = co_await read();
  if (!result.failure.error) result.value = plans_.opens(name, record).has_value();
  // Nobody is refused for what was so some time ago.
  if (result.value && !*result.value && plans_.are_old()) {
    result.failure = co_await read();
    result.value.reset();
    if (!result.failure.error) result.value = plans_.opens(name, record).has_value();
  }
  co_return result;
}

asio::awaitable<Failure> TargetGuard::read() {
  Failure failure;
  try {
    failure = co_await plans_.read(store_.env().now() + store_.request_timeout());
  } catch (const std::exception& error) {
    failure = dlock::failure_of(error);
  }
  co_return failure;
}

void TargetGuard::read_meanwhile() {
  if (is_reading_) return;
  is_reading_ = true;
  store_.spawn(finish_reading());
}

asio::awaitable<void> TargetGuard::finish_reading() {
  const auto keep = store_.shared_from_this();
  co_await read();
  is_reading_ = false;
  for (const auto& waiter : std::exchange(waiters_, {})) waiter->notify();
}

}  // namespace dlock::core::migration
