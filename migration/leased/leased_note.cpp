// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_note.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dlock/spi/error.hpp"
#include "migration/ledger.hpp"

namespace dlock::core::migration {
namespace {

Failure unreadable(const Store& store, const std::string& plan, const std::string& why) {
  return make_failure(errc::protocol,
                      fmt::format("the store '{}': the ceiling of plan '{}' cannot be read: {}",
                                  store.name(), plan, why));
}

}  // namespace

asio::awaitable<LeasedNote::Look> LeasedNote::read() {
  Look look;
  look.failure = co_await store_->connected();
  if (look.failure.error) {
    look.failure = failure_of(*store_, look.failure);
    co_return look;
  }
  look.sent = store_->env().now();
  RecordAnswer answer;
  try {
    answer = co_await store_->backend().migration().note(leased_key(plan_),
                                                         look.sent + store_->request_timeout());
  } catch (const std::exception& error) {
    answer.failure = dlock::failure_of(error);
  }
  look.answered = store_->env().now();
  if (answer.status != RecordStatus::done) {
    if (!answer.failure.error) answer.failure = make_failure(errc::unavailable, "no answer");
    look.failure = failure_of(*store_, answer.failure);
    co_return look;
  }
  look.text = std::move(answer.found);
  if (!look.text) co_return look;
  std::string why;
  look.gate = parse_leased_gate(*look.text, &why);
  if (!look.gate) {
    look.failure = make_failure(
        errc::protocol, fmt::format("the store '{}': the gate of plan '{}' cannot be read: {}",
                                    store_->name(), plan_, why));
  }
  co_return look;
}

asio::awaitable<LeasedNote::Written> LeasedNote::write(std::optional<std::string> from,
                                                       LeasedGate to) {
  Written written;
  const auto before = from ? parse_leased_gate(*from) : std::nullopt;
  if (to.ceiling > (before ? before->ceiling : 0)) {
    written.failure = co_await remember(to.ceiling);
    if (written.failure.error) co_return written;
  }
  written.sent = store_->env().now();
  RecordAnswer answer;
  answer.status = RecordStatus::unknown;
  try {
    answer = co_await store_->backend().migration().set_note(
        leased_key(plan_), std::move(from), to_text(to), written.sent + store_->request_timeout());
  } catch (const std::exception& error) {
    answer.failure = dlock::failure_of(error);
  }
  switch (answer.status) {
    case RecordStatus::done:
      written.outcome = Written::Outcome::done;
      break;
    case RecordStatus::conflict:
      written.outcome = Written::Outcome::conflict;
      break;
    case RecordStatus::unknown:
      written.outcome = Written::Outcome::unknown;
      break;
    case RecordStatus::unavailable:
    case RecordStatus::failed:
      if (!answer.failure.error) answer.failure = make_failure(errc::unavailable, "no answer");
      written.failure = failure_of(*store_, answer.failure);
      break;
  }
  co_return written;
}

asio::awaitable<Result<std::uint64_t>> LeasedNote::highest_ceiling() {
  auto highest = co_await ceiling_in(stores_.to);
  if (!highest.value || store_ == stores_.to) co_return highest;
  auto other = co_await ceiling_in(store_);
  if (other.value) other.value = std::max(*other.value, *highest.value);
  co_return other;
}

asio::awaitable<Result<std::uint64_t>> LeasedNote::ceiling_in(std::shared_ptr<Store> store) {
  Result<std::uint64_t> ceiling;
  Ledger ledger(stores_.from, stores_.to);
  const auto note = co_await ledger.read(store, ceiling_key(plan_));
  if (note.status != RecordStatus::done) {
    ceiling.failure = failure_of(*store, note);
    co_return ceiling;
  }
  ceiling.value = 0;
  if (!note.found) co_return ceiling;
  std::string why;
  ceiling.value = parse_ceiling(*note.found, &why);
  if (!ceiling.value) ceiling.failure = unreadable(*store, plan_, why);
  co_return ceiling;
}

asio::awaitable<Failure> LeasedNote::remember(std::uint64_t ceiling) {
  auto failure = co_await remember_in(stores_.to, ceiling);
  if (failure.error && store_ != stores_.to) failure = co_await remember_in(store_, ceiling);
  co_return failure;
}

asio::awaitable<Failure> LeasedNote::remember_in(std::shared_ptr<Store> store,
                                                 std::uint64_t ceiling) {
  Ledger ledger(stores_.from, stores_.to);
  for (int i = 0; i < kMostWrites; ++i) {
    auto note = co_await ledger.read(store, ceiling_key(plan_));
    if (note.status != RecordStatus::done) co_return failure_of(*store, note);
    std::string why;
    const auto known = note.found ? parse_ceiling(*note.found, &why) : 0;
    if (!known) co_return unreadable(*store, plan_, why);
    if (*known >= ceiling) co_return Failure{};
    std::optional<std::string> text = ceiling_text(ceiling);
    const auto outcome =
        co_await ledger.set(store, ceiling_key(plan_), std::move(note.found), std::move(text));
    if (outcome) co_return *outcome;
  }
  co_return out_of_writes(*store);
}

}  // namespace dlock::core::migration
