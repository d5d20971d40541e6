// SPDX-License-Identifier: Apache-2.0
#include "migration/dual/window_note.hpp"

#include <fmt/format.h>

#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/error.hpp"
#include "migration/eligibility.hpp"
#include "migration/ledger.hpp"

namespace dlock::core::migration {
WindowNote::Look WindowNote::look_at(std::optional<std::string> text, TimePoint sent) const {
  Look look;
  look.sent = sent;
  look.answered = store_->env().now();
  look.text = std::move(text);
  if (!look.text) return look;
  std::string why;
  look.window = parse_window(*look.text, &why);
  if (!look.window) {
    look.failure =
        make_failure(errc::protocol, fmt::format("the store '{}': the window of plan '{}' cannot "
                                                 "be read: {}",
                                                 store_->name(), plan_, why));
  }
  return look;
}

asio::awaitable<WindowNote::Look> WindowNote::read() {
  Look look;
  look.failure = co_await store_->connected();
  if (look.failure.error) {
    look.failure = failure_of(*store_, look.failure);
    co_return look;
  }
  const auto sent = store_->env().now();
  RecordAnswer answer;
  try {
    answer = co_await store_->backend().migration().note(window_key(plan_),
                                                         sent + store_->request_timeout());
  } catch (const std::exception& error) {
    end_if_out_of_memory(error);
    answer.failure = make_failure(errc::protocol, error.what());
  }
  if (answer.status != RecordStatus::done) {
    if (!answer.failure.error) answer.failure = make_failure(errc::unavailable, "no answer");
    look.failure = failure_of(*store_, answer.failure);
    co_return look;
  }
  look = look_at(std::move(answer.found), sent);
  co_return look;
}

asio::awaitable<WindowNote::Written> WindowNote::write(std::optional<std::string> from, Window to) {
  Written written;
  std::optional<std::string> text = to_text(to);
  if (text->size() > kLongestWindow) {
    written.failure = make_failure(errc::not_supported, "the window is too long for a note");
    co_return written;
  }
  written.sent = store_->env().now();
  RecordAnswer answer;
  answer.status = RecordStatus::unknown;
  try {
    answer = co_await store_->backend().migration().set_note(
        window_key(plan_), std::move(from), std::move(text),
        written.sent + store_->request_timeout());
  } catch (const std::exception& error) {
    end_if_out_of_memory(error);
    answer.failure = make_failure(errc::protocol, error.what());
  }
  switch (answer.status) {
    case RecordStatus::done:
      written.outcome = Written::Outcome::done;
      break;
    case RecordStatus::conflict:
      written.outcome = Written::Outcome::conflict;
      written.found = look_at(std::move(answer.found), written.sent);
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

asio::awaitable<Result<std::shared_ptr<Store>>> durable_end(std::shared_ptr<Store> from,
                                                            std::shared_ptr<Store> to) {
  Result<std::shared_ptr<Store>> result;
  result.failure = co_await to->connected();
  if (result.failure.error) {
    result.failure = failure_of(*to, result.failure);
    co_return result;
  }
  result.value = keeps_records(to->backend().capabilities()) ? to : from;
  co_return result;
}

}  // namespace dlock::core::migration
