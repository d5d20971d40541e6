// SPDX-License-Identifier: Apache-2.0
#include "migration/leased/gate_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dlock/spi/error.hpp"
#include "migration/plan.hpp"

namespace dlock::core::migration {
namespace {

using std::chrono::milliseconds;

Failure reader_closed() { return make_failure(errc::closed, ""); }

/// After a failure.
Duration reading_pause(milliseconds lease) {
  return std::clamp<Duration>(lease / 20, milliseconds(10), std::chrono::seconds(1));
}

}  // namespace

GateReader::GateReader(LeasedStores stores, std::string plan)
    : stores_(std::move(stores)),
      plan_(std::move(plan)),
      note_(stores_, plan_),
      news_(std::make_shared<Signal>(stores_.gate->env())) {}

bool GateReader::is_final() const noexcept {
  return newest_ && newest_->gate.state == LeasedState::final_;
}

ReadingPtr GateReader::newest() const {
  return newest_ && newest_->until > env().now() ? newest_ : nullptr;
}

asio::awaitable<GateReader::Answer> GateReader::reading() {
  Answer answer;
  if (closed_) {
    answer.failure = reader_closed();
    co_return answer;
  }
  answer.reading = newest();
  if (answer.reading) co_return answer;
  Waiter waiter(env());
  waiters_.push_back(waiter);
  news_->notify();
  if (!std::exchange(running_, true)) stores_.gate->receive(shared_from_this(), run());
  const auto told = co_await waiter.get_until(kNever);
  answer.failure = *told;
  if (answer.failure.error) co_return answer;
  answer.reading = newest();
  if (!answer.reading) {
    answer.failure = make_failure(
        errc::unavailable, fmt::format("the store '{}' answered later than a reading of its gate "
                                       "counts",
                                       stores_.gate->name()));
  }
  co_return answer;
}

void GateReader::add(std::weak_ptr<ReadingListener> listener) {
  has_listeners();
  listeners_.push_back(std::move(listener));
  if (closed_ || is_final()) return;
  news_->notify();
  if (!std::exchange(running_, true)) stores_.gate->receive(shared_from_this(), run());
}

bool GateReader::has_listeners() {
  std::erase_if(listeners_, [](const auto& listener) { return listener.expired(); });
  return !listeners_.empty();
}

void GateReader::close() {
  if (std::exchange(closed_, true)) return;
  news_->notify();
}

TimePoint GateReader::next_due() {
  if (!waiters_.empty()) return env().now();
  return has_listeners() && !is_final() ? read_at_ : kNever;
}

asio::awaitable<void> GateReader::run() {
  const auto self = shared_from_this();
  while (!closed_) {
    co_await news_->wait_until(next_due());
    if (closed_) break;
    const auto due = next_due();
    if (due > env().now()) continue;
    const auto waiting = std::exchange(waiters_, {});
    const auto failure = co_await read_now();
    for (const auto& waiter : waiting) waiter.set(failure);
  }
  for (const auto& waiter : std::exchange(waiters_, {})) waiter.set(reader_closed());
  stores_.gate->dismiss(self);
}

asio::awaitable<Failure> GateReader::read_now() {
  auto look = co_await note_.read();
  auto failure = closed_ ? reader_closed() : refused(look);
  if (!failure.error) {
    learn(std::move(*look.gate), std::move(*look.text), look.sent);
    co_return failure;
  }
  const auto lease = newest_ ? newest_->gate.lease : kDefaultGateLease;
  read_at_ = env().now() + reading_pause(lease);
  for (const auto& one : std::vector(listeners_)) {
    if (const auto listener = one.lock()) listener->on_reading_failed();
  }
  co_return failure;
}

Failure GateReader::refused(const LeasedNote::Look& look) const {
  if (look.failure.error) return look.failure;
  const auto& at = stores_.gate->name();
  if (!look.gate) {
    return make_failure(
        errc::no_gate,
        fmt::format("the store '{0}' has no gate of plan '{1}': it was not started, or the gate is "
                    "lost, or it is in another store; write `gate: STORE`, or see `dlock migrate "
                    "status {1}`",
                    at, plan_));
  }
  const auto& gate = *look.gate;
  if (gate.from != stores_.from->name() || gate.to != stores_.to->name()) {
    return make_failure(
        errc::config_unsafe,
        fmt::format(
            "plan '{}' moves locks from '{}' to '{}', but here from '{}' to '{}'; write the "
            "same stores as where it was started",
            plan_, gate.from, gate.to, stores_.from->name(), stores_.to->name()));
  }
  if (!gate.has_begun()) return make_failure(errc::no_gate, start_broken_off(plan_));
  if (!plan_id_.empty() && gate.plan_id != plan_id_) {
    return make_failure(errc::no_gate,
                        fmt::format("the gate of plan '{}' in the store '{}' is that of another "
                                    "start of the plan; restart this program",
                                    plan_, at));
  }
  return {};
}

void GateReader::learn(LeasedGate gate, std::string text, TimePoint sent) {
  plan_id_ = gate.plan_id;
  if (newest_ && sent < newest_->sent) return;  // a newer request was answered first
  const bool is_for_good = gate.state == LeasedState::final_;
  const auto until = is_for_good ? kNever : counts_until(sent, gate.lease);
  read_at_ = sent + Duration(gate.lease) / 3;
  newest_ = std::make_shared<const Reading>(Reading{std::move(gate), std::move(text), sent, until});
  if (until <= env().now()) return;
  const auto reading = newest_;
  for (const auto& one : std::vector(listeners_)) {
    if (const auto listener = one.lock()) listener->on_reading(*reading);
  }
}

asio::awaitable<GateReader::Answer> GateReader::raise(ReadingPtr under, std::uint64_t token) {
  const auto self = shared_from_this();
  Answer answer;
  auto higher = with_room_for(under->gate, token);
  auto written = co_await note_.write(under->text, higher);
  using Outcome = LeasedNote::Written::Outcome;
  if (closed_) {
    answer.failure = reader_closed();
  } else if (written.outcome == Outcome::done) {
    auto text = to_text(higher);
    learn(std::move(higher), std::move(text), written.sent);
    answer.reading = newest();
  } else if (written.outcome == Outcome::failed) {
    answer.failure = std::move(written.failure);
  } else {
    // Another program has changed the gate, or this change is not certain.
    answer.failure = co_await read_now();
    if (!answer.failure.error) answer.reading = newest();
  }
  if (!answer.failure.error && !answer.reading) {
    answer.failure = make_failure(errc::unavailable, "the gate's store answered too late");
  }
  co_return answer;
}

}  // namespace dlock::core::migration
