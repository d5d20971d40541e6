// SPDX-License-Identifier: Apache-2.0
#include "core/store/renewer.hpp"

#include <algorithm>

#include "dlock/detail/out_of_memory.hpp"

namespace dlock::core {
namespace {

/// Whether the store may still have our entry after a loss for this reason.
bool leaves_something(LossReason why) {
  return why == LossReason::expired || why == LossReason::access_denied ||
         why == LossReason::failover || why == LossReason::store_restarted;
}

/// Renewals that are due this soon join the batch that is sent now.
Duration batch_window(Duration lease) { return lease / 20; }

Duration retry_pause(Duration lease) {
  return std::clamp<Duration>(lease / 20, std::chrono::milliseconds(10), std::chrono::seconds(1));
}

}  // namespace

Renewer::Renewer(Env& env, Backend& backend, TaskGroup& tasks, OnLeftBehind on_left_behind,
                 OnBroken on_broken)
    : env_(env),
      backend_(backend),
      tasks_(tasks),
      on_left_behind_(std::move(on_left_behind)),
      on_broken_(std::move(on_broken)) {}

Renewer::~Renewer() { env_.cancel(timer_); }

void Renewer::add(const std::shared_ptr<Hold>& hold, const ClaimPtr& claim,
                  const Validity& validity, const Limits& limits) {
  const LeaseFsm lease(validity, limits.drift_margin, retry_pause(limits.lease), env_.now());
  const auto number = claim->number();
  Entry entry{hold, claim, lease, limits};
  entry.due = next_moment(entry);
  const auto due = entry.due;
  // As a rule it is the newest claim, and the last to be due.
  entries_.insert_or_assign(entries_.end(), number, std::move(entry));
  due_.insert(due_.end(), {due, number});
  arm();
}

Renewer::Removed Renewer::remove(const Hold& hold) {
  const auto claim = hold.claim();
  const auto found = claim ? entries_.find(claim->number()) : entries_.end();
  if (found == entries_.end()) return {};
  const auto& entry = found->second;
  const auto deadline = entry.lease.deadline();
  const auto until = deadline == kNever
                         ? kNever
                         : std::max(deadline + entry.limits.drift_margin, entry.asked_until);
  due_.erase({entry.due, found->first});
  entries_.erase(found);
  return {claim, until};
}

void Renewer::renew_within(const Hold& hold, Duration time) {
  const auto claim = hold.claim();
  const auto found = claim ? entries_.find(claim->number()) : entries_.end();
  if (found == entries_.end()) return;
  found->second.lease.renew_within(time);
  schedule(found->second);
  arm();
}

std::vector<std::shared_ptr<Hold>> Renewer::holds() const {
  std::vector<std::shared_ptr<Hold>> all;
  all.reserve(entries_.size());
  for (const auto& [number, entry] : entries_) all.push_back(entry.hold);
  return all;
}

std::shared_ptr<Hold> Renewer::find(const Claim& claim) const {
  const auto found = entries_.find(claim.number());
  return found == entries_.end() ? nullptr : found->second.hold;
}

void Renewer::stop() {
  entries_.clear();
  due_.clear();
  env_.cancel(timer_);
}

// An event may end any of them.
template <class Event>
void Renewer::for_each(Event event) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto number = at->first;
    apply(at->second, event(at->second.lease));
    at = entries_.upper_bound(number);
  }
  arm();
}

void Renewer::on_link_down(LossReason at_deadline) {
  for (const auto& [number, entry] : entries_) entry.hold->set_at_deadline(at_deadline);
  for_each([](LeaseFsm& lease) { return lease.on_link_down(); });
}

void Renewer::on_link_up() {
  for (const auto& [number, entry] : entries_) entry.hold->set_at_deadline(LossReason::expired);
  for_each([now = env_.now()](LeaseFsm& lease) { return lease.on_link_up(now); });
}

void Renewer::on_session_gone(LossReason why) {
  for_each([why](LeaseFsm& lease) { return lease.on_gone(why); });
}

void Renewer::on_claim_gone(const Claim& claim, LossReason why) {
  const auto found = entries_.find(claim.number());
  if (found != entries_.end()) apply(found->second, found->second.lease.on_gone(why));
}

void Renewer::on_claim_broken(const Claim& claim, const std::string& by) {
  const auto found = entries_.find(claim.number());
  if (found == entries_.end()) return;
  found->second.hold->set_broken_by(by);
  on_claim_gone(claim, LossReason::broken);
}

// Invalidates `entry` if the lock is lost.
void Renewer::apply(Entry& entry, LeaseFsm::Change change) {
  // A caller may have seen the deadline pass a moment before a late confirmation arrived here. A
  // loss that was reported is final. (After another loss, the dependency decides when the hold is
  // dropped.)
  if (change != LeaseFsm::Change::lost && entry.hold->state() == HandleState::lost &&
      env_.now() >= entry.hold->promised()) {
    change = entry.lease.on_gone(LossReason::expired);
  }
  if (change == LeaseFsm::Change::lost) {
    const auto hold = entry.hold;
    auto reason = entry.lease.reason();
    if (reason == LossReason::expired) reason = hold->at_deadline();
    const auto removed = remove(*hold);
    hold->become(HandleState::lost, reason);
    if (leaves_something(reason)) on_left_behind_(removed.claim);
    if (reason == LossReason::broken) on_broken_(hold, removed.claim);
    return;
  }
  entry.hold->move_deadline(entry.lease.deadline());
  if (change == LeaseFsm::Change::suspect) entry.hold->become(HandleState::suspect);
  if (change == LeaseFsm::Change::held) entry.hold->become(HandleState::held);
  schedule(entry);
}

TimePoint Renewer::next_moment(const Entry& entry) noexcept {
  return std::min(entry.lease.deadline(), entry.lease.renew_at());
}

void Renewer::schedule(Entry& entry) noexcept {
  auto place = due_.extract({entry.due, entry.claim->number()});
  if (place.empty()) return;
  entry.due = next_moment(entry);
  place.value().first = entry.due;
  due_.insert(std::move(place));
}

void Renewer::arm() {
  const auto next = due_.empty() ? kNever : due_.begin()->first;
  if (next == armed_) return;
  env_.cancel(std::exchange(timer_, 0));
  armed_ = kNever;
  if (next == kNever) return;
  timer_ = env_.call_at(next, [this] {
    timer_ = 0;
    on_timer();
  });
  armed_ = next;
}

// After a pause of the process both times may have passed: the deadline counts first.
void Renewer::on_timer() {
  armed_ = kNever;
  const auto now = env_.now();
  expire_overdue(now);
  renew_due(now);
  arm();
}

void Renewer::renew_due(TimePoint now) {
  auto claims = take_due(now);
  if (claims.empty()) return;
  const auto& first = entries_.at(claims.front()->number());
  auto patience = first.limits.request_timeout;
  for (const auto& claim : claims) {
    patience = std::min(patience, entries_.at(claim->number()).lease.patience());
  }
  const auto deadline = now + std::max<Duration>(patience, std::chrono::milliseconds(20));
  for (const auto& claim : claims) {
    auto& entry = entries_.at(claim->number());
    entry.lease.on_extend_sent(now);
    entry.asked_until = deadline + entry.limits.lease;
    schedule(entry);
  }
  tasks_.spawn(renew(std::move(claims), deadline));
}

void Renewer::expire_overdue(TimePoint now) {
  for (auto at = due_.begin(); at != due_.end() && at->first <= now;) {
    const auto place = *at;
    auto& entry = entries_.at(place.second);
    apply(entry, entry.lease.on_time(now));
    at = due_.upper_bound(place);
  }
}

std::vector<ClaimPtr> Renewer::take_due(TimePoint now) {
  std::vector<const Entry*> due;
  bool any_due = false;
  bool whole_session = false;
  for (const auto& [when, number] : due_) {
    const auto& entry = entries_.at(number);
    if (!whole_session && when > now + batch_window(entry.limits.lease)) break;
    if (entry.lease.renew_at() == kNever) continue;
    any_due = any_due || entry.lease.renew_at() <= now;
    whole_session = entry.limits.scope == LeaseScope::session && any_due;
    due.push_back(&entry);
  }
  std::vector<ClaimPtr> claims;
  if (!any_due) return claims;
  claims.reserve(due.size());
  for (const auto* entry : due) claims.push_back(entry->claim);
  return claims;
}

asio::awaitable<void> Renewer::renew(std::vector<ClaimPtr> claims, TimePoint deadline) {
  const auto self = shared_from_this();
  std::vector<ExtendAnswer> answers;
  try {
    auto batch = claims;
    answers = co_await backend_.extend(std::move(batch), deadline);
  } catch (const std::exception& error) {
    end_if_out_of_memory(error);
    answers.clear();  // answered below as a failed renewal
  }
  const ExtendAnswer none;
  const auto now = env_.now();
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (const auto found = entries_.find(claims[i]->number()); found != entries_.end()) {
      on_answer(found->second, i < answers.size() ? answers[i] : none, now);
    }
  }
  arm();
}

void Renewer::on_answer(Entry& entry, const ExtendAnswer& answer, TimePoint now) {
  switch (answer.status) {
    case ExtendStatus::extended:
      return apply(entry, entry.lease.on_extended(answer.validity, now));
    case ExtendStatus::gone:
      if (answer.reason == LossReason::broken) entry.hold->set_broken_by(answer.broken_by);
      return apply(entry, entry.lease.on_gone(answer.reason));
    case ExtendStatus::unavailable:
    case ExtendStatus::unknown:
      return apply(entry, entry.lease.on_extend_failed(now));
  }
}

}  // namespace dlock::core
