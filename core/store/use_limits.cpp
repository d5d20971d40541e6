// SPDX-License-Identifier: Apache-2.0
#include "core/store/use_limits.hpp"

#include <algorithm>
#include <utility>

namespace dlock::core {
namespace {

bool has_ended(const std::weak_ptr<Hold>& weak) {
  const auto hold = weak.lock();
  return !hold || hold->has_ended();
}

}  // namespace

UseLimits::UseLimits(Env& env, Duration patience, GiveBack give_back)
    : env_(env), patience_(patience), give_back_(std::move(give_back)) {}

UseLimits::~UseLimits() { stop(); }

void UseLimits::stop() noexcept {
  uses_.clear();
  ending_.clear();
  env_.cancel(std::exchange(timer_, 0));
  armed_ = kNever;
}

void UseLimits::add(const std::shared_ptr<Hold>& hold) {
  if (uses_.size() >= most_) forget_ended();
  uses_.emplace(hold->bound().until(), Use{hold, ++last_number_});
  arm();
}

// A release does not remove its entry: most holds are short, and their limits are long.
void UseLimits::forget_ended() {
  std::erase_if(uses_, [this](const auto& each) {
    return has_ended(each.second.hold) && ending_.count(each.second.number) == 0;
  });
  most_ = std::max<std::size_t>(64, 2 * uses_.size());
}

void UseLimits::arm() {
  const auto next = uses_.empty() ? kNever : uses_.begin()->first;
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

void UseLimits::on_timer() {
  armed_ = kNever;
  const auto self = shared_from_this();
  const auto now = env_.now();
  while (!uses_.empty() && uses_.begin()->first <= now) look(uses_.extract(uses_.begin()), now);
  arm();
}

void UseLimits::look(Uses::node_type use, TimePoint now) {
  const auto number = use.mapped().number;
  if (ending_.count(number) != 0) return give_back(number, false);
  const auto hold = use.mapped().hold.lock();
  if (!hold) return;
  // The first reader of the state after the limit marks it lost, and that may have been its user.
  const bool is_lost = hold->state() == HandleState::lost;
  if (is_lost && !is_over_use(hold->reason())) return;
  if (!is_lost && hold->has_ended()) return;
  if (!is_lost) {
    use.key() = hold->bound().until();
  } else {
    end(hold, number);
    if (ending_.count(number) == 0) return;
    use.key() = now + patience_;
  }
  uses_.insert(std::move(use));
}

void UseLimits::end(const std::shared_ptr<Hold>& hold, std::uint64_t number) {
  ending_.emplace(number, hold);
  const auto audience = hold->audience();
  if (audience == Hold::Audience::nobody) return give_back(number, hold->is_left());
  Job done = [weak = weak_from_this(), number] {
    if (const auto self = weak.lock()) self->give_back(number, true);
  };
  if (audience == Hold::Audience::owner) {
    hold->when_left(std::move(done));
  } else {
    hold->when_told(std::move(done));
  }
}

void UseLimits::give_back(std::uint64_t number, bool is_left) {
  const auto found = ending_.extract(number);
  if (!found.empty()) give_back_(found.mapped(), is_left);
}

}  // namespace dlock::core
