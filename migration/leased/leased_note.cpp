// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/leased_note.hpp"

#include <fmt/format.h>

#include "dlock/spi/error.hpp"
#include "migration/ledger.hpp"

namespace dlock::core::migration {

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

}  // namespace dlock::core::migration
