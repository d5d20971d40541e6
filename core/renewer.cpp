// SPDX-License-Identifier: Apache-2.0
#include "core/renewer.hpp"

#include <algorithm>

#include "core/planted.hpp"

namespace dlock::core {
namespace {

/// Whether the store may still have our entry after a loss for this reason.
bool leaves_something(LossReason why) {
  return why == LossReason::expired || why == LossReason::failover ||
         why == LossReason::store_restarted;
}

/// Renewals that are due this soon join the batch that goes now.
Duration batch_window(Duration lease) { return lease / 20; }

Duration retry_pause(Duration lease) {
  return std::clamp<Duration>(lease / 20, std::chrono::milliseconds(10), std::chrono::seconds(1));
}

}  // namespace

Renewer::Renewer(Env& env, Backend& backend, TaskGroup& tasks, OnLeftBehind on_left_behind)
    : env_(env), backend_(backend), tasks_(tasks), on_left_behind_(std::move(on_left_behind)) {}

Renewer::~Renewer() { env_.cancel(timer_); }

void Renewer::add(const std::shared_ptr<Hold>& hold, const ClaimPtr& claim,
                  const Validity& validity, const Limits& limits) {
  const LeaseFsm lease(validity, limits.drift_margin, retry_pause(limits.lease));
  const auto added =
      entries_.insert_or_assign(claim->number(), Entry{hold, claim, lease, limits, kNever}).first;
  schedule(added->second);
  arm();
}

Renewer::Removed Renewer::remove(const Hold& hold) {
  const auto claim = hold.claim();
  const auto found = claim ? entries_.find(claim->number()) : entries_.end();
  if (found == entries_.end()) return {};
  const auto& entry = found->second;
  const auto deadline = entry.lease.deadline();
  const auto until = deadline == kNever ? kNever : deadline + entry.limits.drift_margin;
  due_.erase({entry.due, found->first});
  entries_.erase(found);
  return {claim, until};
}

std::vector<std::shared_ptr<Hold>> Renewer::holds() const {
  std::vector<std::shared_ptr<Hold>> all;
  all.reserve(entries_.size());
  for (const auto& [number, entry] : entries_) all.push_back(entry.hold);
  return all;
}

void Renewer::stop() {
  entries_.clear();
  due_.clear();
  env_.cancel(timer_);
}

template <class Event>
void Renewer::for_each(Event event) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(entries_.size());
  for (const auto& [number, entry] : entries_) numbers.push_back(number);
  for (const auto number : numbers) {
    if (const auto found = entries_.find(number); found != entries_.end()) {
      apply(found->second, event(found->second.lease));
    }
  }
  arm();
}

void Renewer::on_link_down() {
  for_each([](LeaseFsm& lease) { return lease.on_link_down(); });
}

void Renewer::on_link_up() {
  for_each([now = env_.now()](LeaseFsm& lease) { return lease.on_link_up(now); });
}

void Renewer::on_session_gone(LossReason why) {
  for_each([why](LeaseFsm& lease) { return lease.on_gone(why); });
}

void Renewer::on_claim_gone(const Claim& claim, LossReason why) {
  const auto found = entries_.find(claim.number());
  if (found != entries_.end()) apply(found->second, found->second.lease.on_gone(why));
}

// Invalidates `entry` if the lock is lost.
void Renewer::apply(Entry& entry, LeaseFsm::Change change) {
  // A caller may have seen the deadline pass a moment before a late confirmation came in here:
  // what was told stays told. (Lost for another reason, its companion decides when it is dropped.)
  if (change != LeaseFsm::Change::lost && entry.hold->state() == HandleState::lost &&
      env_.now() >= entry.hold->promised()) {
    change = entry.lease.on_gone(LossReason::expired);
  }
  if (change == LeaseFsm::Change::lost) {
    const auto hold = entry.hold;
    const auto reason = entry.lease.reason();
    const auto removed = remove(*hold);
    hold->become(HandleState::lost, reason);
    if (leaves_something(reason)) on_left_behind_(removed.claim);
    return;
  }
  entry.hold->move_deadline(entry.lease.deadline());
  if (change == LeaseFsm::Change::suspect) entry.hold->become(HandleState::suspect);
  if (change == LeaseFsm::Change::held) entry.hold->become(HandleState::held);
  schedule(entry);
}

void Renewer::schedule(Entry& entry) {
  const auto number = entry.claim->number();
  due_.erase({entry.due, number});
  entry.due = DLOCK_PLANTED("core_deadline_is_not_watched")
                  ? entry.lease.renew_at()
                  : std::min(entry.lease.deadline(), entry.lease.renew_at());
  if (entry.due != kNever) due_.insert({entry.due, number});
}

void Renewer::arm() {
  const auto next = due_.empty() ? kNever : due_.begin()->first;
  if (next == armed_) return;
  env_.cancel(timer_);
  timer_ = 0;
  armed_ = next;
  if (next == kNever) return;
  timer_ = env_.call_at(next, [this] {
    armed_ = kNever;
    on_timer();
  });
}

// After a pause of the process both moments may lie in the past: the deadline counts first.
void Renewer::on_timer() {
  const auto now = env_.now();
  expire_overdue(now);
  auto claims = take_due(now);
  if (!claims.empty()) {
    const auto& first = entries_.at(claims.front()->number());
    // An unanswered renewal leaves time for another try before the deadline.
    const auto patience =
        std::max<Duration>((first.lease.deadline() - now) / 2, std::chrono::milliseconds(20));
    const auto deadline = now + std::min(first.limits.request_timeout, patience);
    tasks_.spawn(renew(std::move(claims), deadline));
  }
  arm();
}

void Renewer::expire_overdue(TimePoint now) {
  std::vector<std::uint64_t> overdue;
  for (const auto& [when, number] : due_) {
    if (when > now) break;
    overdue.push_back(number);
  }
  for (const auto number : overdue) {
    if (const auto found = entries_.find(number); found != entries_.end()) {
      apply(found->second, found->second.lease.on_time(now));
    }
  }
}

std::vector<ClaimPtr> Renewer::take_due(TimePoint now) {
  std::vector<Entry*> due;
  bool any_due = false;
  bool whole_session = false;
  for (const auto& [when, number] : due_) {
    auto& entry = entries_.at(number);
    if (!whole_session && when > now + batch_window(entry.limits.lease)) break;
    if (entry.lease.renew_at() == kNever) continue;
    any_due = any_due || entry.lease.renew_at() <= now;
    whole_session = entry.limits.scope == LeaseScope::session && any_due;
    due.push_back(&entry);
  }
  std::vector<ClaimPtr> claims;
  if (!any_due) return claims;
  for (auto* entry : due) {
    entry->lease.on_extend_sent();
    claims.push_back(entry->claim);
    schedule(*entry);
  }
  return claims;
}

asio::awaitable<void> Renewer::renew(std::vector<ClaimPtr> claims, TimePoint deadline) {
  const auto self = shared_from_this();
  auto batch = claims;
  std::vector<ExtendAnswer> answers;
  try {
    answers = co_await backend_.extend(std::move(batch), deadline);
  } catch (const std::exception&) {
    answers.clear();  // answered below as a failed renewal
  }
  answers.resize(claims.size());
  const auto now = env_.now();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (const auto found = entries_.find(claims[i]->number()); found != entries_.end()) {
      on_answer(found->second, answers[i], now);
    }
  }
  arm();
}

void Renewer::on_answer(Entry& entry, const ExtendAnswer& answer, TimePoint now) {
  switch (answer.status) {
    case ExtendStatus::extended:
      return apply(entry, entry.lease.on_extended(answer.validity, now));
    case ExtendStatus::gone:
      return apply(entry, entry.lease.on_gone(answer.reason));
    case ExtendStatus::unavailable:
    case ExtendStatus::unknown:
      return apply(entry, entry.lease.on_extend_failed(now));
  }
}

}  // namespace dlock::core
