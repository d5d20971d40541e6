// SPDX-License-Identifier: Apache-2.0
#include "core/manager/multi_grant.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/loop/driving.hpp"
#include "dlock/detail/out_of_memory.hpp"
#include "dlock/spi/fork.hpp"

namespace dlock::core {

MultiGrant::MultiGrant(std::string name, std::size_t size, bool one_loop, Mode mode)
    : one_loop_(one_loop), said_(size, HandleState::held) {
  identity_.name = std::move(name);
  identity_.mode = mode;
  parts_.reserve(size);
}

void MultiGrant::add(LockHandle& part) {
  auto& store = identity_.store;
  const auto named = [&](const auto& other) { return other->identity().store == part.store(); };
  const bool is_new = std::none_of(parts_.begin(), parts_.end(), named);
  auto stores = is_new && !parts_.empty() ? store + ", " + part.store() : part.store();
  part.on_state([weak = weak_from_this(), at = parts_.size()](HandleState told, LossReason why) {
    if (const auto self = weak.lock()) self->on_part(at, told, why);
  });
  parts_.push_back(detail::GrantAccess::take(part));
  if (is_new) store = std::move(stores);
}

const detail::Grant* MultiGrant::lost_part() const noexcept {
  const auto found = std::find_if(parts_.begin(), parts_.end(), [](const auto& part) {
    return part->state() == HandleState::lost;
  });
  return found == parts_.end() ? nullptr : found->get();
}

void MultiGrant::note(LossReason reason) noexcept {
  auto none = LossReason::none;
  reason_.compare_exchange_strong(none, reason, std::memory_order_acq_rel);
}

HandleState MultiGrant::state() noexcept {
  auto worst = HandleState::held;
  for (const auto& part : parts_) {
    const auto state = part->state();
    if (state == HandleState::lost) {
      note(part->reason());
      return state;
    }
    if (state != HandleState::held) worst = state;
  }
  return worst;
}

std::string MultiGrant::broken_by() {
  for (const auto& part : parts_) {
    if (part->state() != HandleState::lost || part->reason() != LossReason::broken) continue;
    return part->broken_by();
  }
  return {};
}

std::optional<std::chrono::nanoseconds> MultiGrant::remaining() noexcept {
  std::optional<std::chrono::nanoseconds> least;
  for (const auto& part : parts_) {
    const auto left = part->remaining();
    if (left && (!least || *left < *least)) least = left;
  }
  return least;
}

// Each of them learns that somebody listens: its manager's close() waits for who does.
std::stop_token MultiGrant::stop_token() const noexcept {
  for (const auto& part : parts_) std::ignore = part->stop_token();
  return notifier_.stop_token();
}

void MultiGrant::hand_to_mutex() noexcept {
  for (const auto& part : parts_) part->hand_to_mutex();
}

void MultiGrant::renew_within(std::chrono::nanoseconds time) {
  for (const auto& part : parts_) part->renew_within(time);
}

void MultiGrant::progress() noexcept {
  for (const auto& part : parts_) part->progress();
}

void MultiGrant::on_contended(ContendedCallback callback) {
  if (!notifier_.is_foreign()) notifier_.add(std::move(callback));
  for (const auto& part : parts_) {
    part->on_contended([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->notifier_.note_contended();
      self->tell();
    });
  }
}

void MultiGrant::on_revoke(RevokeCallback callback) {
  const bool is_first = !hears_askings_.exchange(true);
  if (!notifier_.is_foreign()) notifier_.add(std::move(callback));
  // Those that have been told already tell each new one of us soon.
  for (const auto& part : parts_) {
    part->on_revoke([weak = weak_from_this(), is_first](const Revocation& how) {
      const auto self = weak.lock();
      if (!self) return;
      if (is_first) self->notifier_.note_request(how);
      self->tell();
    });
  }
}

// What comes is told when a part tells it. What is, has to be told on some thread, too: a part that
// is not held any more has one.
void MultiGrant::on_state(StateCallback callback) {
  if (notifier_.is_foreign()) return;
  notifier_.add(std::move(callback));
  detail::Grant* teller = nullptr;
  {
    const auto lock = notifier_.lock();
    const auto present = notifier_.state();
    if (present == HandleState::held) return;
    const auto found = std::find(said_.begin(), said_.end(), present);
    teller = parts_[static_cast<std::size_t>(found - said_.begin())].get();
  }
  teller->on_state([weak = weak_from_this()](HandleState, LossReason) {
    if (const auto self = weak.lock()) self->tell();
  });
}

void MultiGrant::on_part(std::size_t at, HandleState state, LossReason reason) {
  {
    const auto lock = notifier_.lock();
    said_[at] = state;
    if (state == HandleState::lost) note(reason);
    const auto says = [this](HandleState what) {
      return std::find(said_.begin(), said_.end(), what) != said_.end();
    };
    const auto worst = says(HandleState::lost)      ? HandleState::lost
                       : says(HandleState::suspect) ? HandleState::suspect
                                                    : HandleState::held;
    const auto why = worst == HandleState::lost ? this->reason() : LossReason::none;
    notifier_.become(lock, worst, why);
  }
  tell();
}

void MultiGrant::tell() {
  auto lock = notifier_.lock();
  if (notifier_.begin(lock))
    notifier_.notify(lock);  // the part on whose thread this is logs errors
}

void MultiGrant::release(Done done) noexcept {
  const auto self = shared_from_this();
  if (notifier_.is_foreign()) {
    for (auto at = parts_.size(); at > 0; --at) parts_[at - 1]->release({});
    if (done) done(make_error_code(errc::closed));
    return;
  }
  const bool is_awaited = static_cast<bool>(done);
  {
    const auto lock = notifier_.lock();
    notifier_.leave(lock);
    unanswered_ = parts_.size();
    released_ = std::move(done);
  }
  bool is_lost = false;
  or_end([&] {
    // Who waits for all must not run the loop of one of them: the others' answers would not end it.
    std::optional<Driving::Intent> apart;
    if (!one_loop_) apart.emplace();
    for (auto at = parts_.size(); at > 0; --at) {
      auto& part = *parts_[at - 1];
      Done told;
      if (is_awaited) told = [self](error_code ec) { self->on_released(ec); };
      part.release(std::move(told));
      if (part.state() != HandleState::lost) continue;
      note(part.reason());
      is_lost = true;
    }
  });
  if (is_lost) or_end([this] { see_to_stop(); });
}

void MultiGrant::on_released(error_code ec) {
  Done done;
  {
    const auto lock = notifier_.lock();
    if (ec && (!result_ || ec == errc::lock_lost)) result_ = ec;
    if (--unanswered_ > 0) return;
    done = std::move(released_);
  }
  if (done) done(result_);
}

/// After a loss that the part does not tell any more: it was given back just then.
void MultiGrant::see_to_stop() {
  {
    const auto lock = notifier_.lock();
    if (!notifier_.become(lock, HandleState::lost, reason())) return;
  }
  // It is left: no callback of it is called any more, so that no user code throws.
  post_callback([self = shared_from_this()] { self->tell(); });
}

}  // namespace dlock::core
