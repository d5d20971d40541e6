// SPDX-License-Identifier: Apache-2.0
#include "migration/gate_note.hpp"

#include <fmt/format.h>

#include "dlock/spi/error.hpp"
#include "migration/ledger.hpp"

namespace dlock::core::migration {

GateNote::Look GateNote::look_at(const RecordAnswer& answer) const {
  Look look;
  if (answer.status != RecordStatus::done && answer.status != RecordStatus::conflict) {
    look.failure = failure_of(*source_, answer);
    return look;
  }
  look.text = answer.found.value_or(std::string());
  if (look.text.empty()) return look;
  std::string why;
  look.gate = parse_gate(look.text, &why);
  if (!look.gate) {
    look.failure = make_failure(
        errc::protocol, fmt::format("the store '{}': the gate of plan '{}' cannot be read: {}",
                                    source_->name(), plan_, why));
  }
  return look;
}

asio::awaitable<GateNote::Look> GateNote::read() {
  RecordAnswer answer;
  answer.failure = co_await source_->connected();
  if (!answer.failure.error) {
    const auto deadline = source_->env().now() + source_->request_timeout();
    answer = co_await source_->backend().migration().note(gate_key(plan_), deadline);
  }
  co_return look_at(answer);
}

asio::awaitable<GateNote::Look> GateNote::turn(Look from, Gate to) {
  std::optional<std::string> before;
  if (!from.text.empty()) before = std::move(from.text);
  std::optional<std::string> after = to_text(to);
  const auto deadline = source_->env().now() + source_->request_timeout();
  auto answer = co_await source_->backend().migration().set_note(gate_key(plan_), std::move(before),
                                                                 after, deadline);
  if (answer.status == RecordStatus::done) answer.found = std::move(after);
  auto look = look_at(answer);
  if (answer.status == RecordStatus::unknown) look = co_await read();
  co_return look;
}

}  // namespace dlock::core::migration
