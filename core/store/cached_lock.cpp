// SPDX-License-Identifier: Apache-2.0
#include "core/store/cached_lock.hpp"

#include <utility>

#include "core/store/host.hpp"
#include "core/store/store.hpp"
#include "dlock/detail/grant.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/fork.hpp"

namespace dlock::core {
namespace {

void tell(const std::shared_ptr<detail::AcquireHandler>& to, error_code ec, LockHandle got) {
  if (auto handler = std::exchange(*to, {})) handler(ec, std::move(got));
}

}  // namespace

/// A waiter of this process, except for the one that asks the store.
struct CachedLock::Waiter {
  std::uint64_t number = 0;
  std::shared_ptr<Store> store;
  Acquisition::Request request;
  std::shared_ptr<detail::AcquireHandler> handler;
  TimePoint begun{};
  TimerId timer = 0;
  std::weak_ptr<Acquisition> acquisition{};  ///< set when it asks the store after all

  void stop_clock() { store->env().cancel(std::exchange(timer, 0)); }
};

/// Receives the changes of the claim's own hold.
class CachedLock::ClaimWatch final : public HoldDependency {
 public:
  ClaimWatch(std::weak_ptr<CachedLock> lock, const Hold& claimed)
      : lock_(std::move(lock)), claimed_(claimed) {}
  TimePoint until() const noexcept override { return kNever; }
  void on_change(HandleState state, LossReason why) noexcept override {
    const auto lock = lock_.lock();
    if (!lock) return;
    auto user = lock->on_change(claimed_, state, why);
    if (state != HandleState::lost) return;
    const std::lock_guard guard(mutex_);
    last_user_ = std::move(user);
  }
  void on_lost(LossReason) override {
    if (const auto lock = lock_.lock()) lock->lead_next();
  }
  std::shared_ptr<Hold> holder() noexcept override {
    {
      const std::lock_guard guard(mutex_);
      if (auto user = last_user_.lock()) return user;
    }
    const auto lock = lock_.lock();
    return lock ? lock->holder(claimed_) : nullptr;
  }
  bool has_user() noexcept override { return holder() != nullptr; }
  void on_contended() override {
    if (const auto lock = lock_.lock()) lock->on_contended(claimed_);
  }

 private:
  const std::weak_ptr<CachedLock> lock_;
  const Hold& claimed_;  ///< it has us
  std::mutex mutex_;
  std::weak_ptr<Hold> last_user_;  ///< when the claim was lost
};

/// The dependency of each user's hold.
class CachedLock::KeptClaim final : public HoldDependency {
 public:
  KeptClaim(std::shared_ptr<CachedLock> lock, std::shared_ptr<Hold> claimed)
      : lock_(std::move(lock)), claimed_(std::move(claimed)) {}
  Hold& claimed() const noexcept { return *claimed_; }
  /// It has ended here: given back, unless it was lost before. Then the next one of us asks the
  /// store. Once.
  void give_back(Releaser::Done done) {
    claimed_->release(std::move(done));
    lock_->lead_next_soon(claimed_->host().env());
  }
  TimePoint until() const noexcept override { return claimed_->until(); }
  LossReason why() const noexcept override {
    const auto known = claimed_->reason();
    return known == LossReason::none ? LossReason::expired : known;
  }
  std::string broken_by() override { return claimed_->broken_by(); }
  bool take_back(Hold& hold, Releaser::Done& done) override {
    lock_->take_back(*this, hold, done);
    return true;
  }
  void on_inherited() noexcept override { claimed_->inherit(); }
  // The user may have seen the deadline pass a moment before a late renewal arrived. A reported
  // loss is final, for all users. Nothing is left to do for a claim that has ended already. If only
  // the user's time is over, the claim is good; it is released when the user has been notified.
  void on_lost(LossReason why) override {
    if (is_over_use(why)) return;
    const auto store = claimed_->store().lock();
    if (store && claimed_->until() != TimePoint::min()) store->drop(claimed_);
  }

  void on_let_go() override { lock_->give_up(*this); }

 private:
  const std::shared_ptr<CachedLock> lock_;
  const std::shared_ptr<Hold> claimed_;
};

// In a fork()ed child the mutex may be locked for ever.
std::shared_ptr<Hold> CachedLock::take() {
  if (!is_idle_.load(std::memory_order_acquire)) return nullptr;
  if (generation_.load(std::memory_order_relaxed) != fork_generation()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (place_ != Place::idle || !kept_->claimed().is_sure()) return nullptr;
  return make_holder();
}

std::shared_ptr<Hold> CachedLock::make_holder() {
  auto hold = std::make_shared<Hold>(kept_->claimed(), kept_);
  if (is_contended_) hold->note_contended();
  holder_ = hold;
  place_ = Place::used;
  is_idle_.store(false, std::memory_order_release);
  return hold;
}

/// Decides what happens to the claim after its user has released it.
CachedLock::Next CachedLock::next() const noexcept {
  if (!kept_->claimed().is_sure()) return Next::give_away;
  if (waiting_ > 0) {
    const bool may_pass = !is_wanted() || in_a_row_ < limits_.cohort;
    return may_pass ? Next::pass : Next::give_away;
  }
  return is_contended_ || limits_.cache <= Duration::zero() ? Next::give_away : Next::keep;
}

CachedLock::KeptClaimPtr CachedLock::end() noexcept {
  place_ = Place::none;
  is_idle_.store(false, std::memory_order_release);
  return std::exchange(kept_, nullptr);
}

void CachedLock::keep_or_pass(Next what) {
  auto& env = kept_->claimed().host().env();
  if (what == Next::pass) {
    env.post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->pass_on();
    });
    place_ = Place::passing;
    return;
  }
  idle_since_ = env.now();
  if (!std::exchange(is_armed_, true)) {
    env.post([weak = weak_from_this(), &env, when = idle_since_ + limits_.cache] {
      if (const auto self = weak.lock()) self->arm(env, when);
    });
  }
  place_ = Place::idle;
  is_idle_.store(true, std::memory_order_release);
}

/// The user's own time is over, and the next user must have another token. Harmless if the claim
/// has ended.
void CachedLock::give_up(KeptClaim& from) {
  KeptClaimPtr ended;
  {
    const std::lock_guard lock(mutex_);
    if (kept_.get() == &from && place_ == Place::used) ended = end();
  }
  if (ended) ended->give_back({});
}

void CachedLock::take_back(KeptClaim& from, Hold& hold, Releaser::Done& done) {
  if (is_over_use(hold.reason())) return give_up(from);
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    if (kept_.get() == &from) {
      const auto what = hold.is_inherited() ? Next::give_away : next();
      waits = what != Next::give_away;
      if (waits) {
        keep_or_pass(what);
      } else {
        end();
      }
    }
  }
  if (waits) {
    if (done) done({});
    return;
  }
  auto& claimed = from.claimed();
  if (hold.is_inherited()) claimed.inherit();
  if (hold.is_handed_to_mutex()) claimed.hand_to_mutex();
  claimed.hand_out();  // a loss that shows now is its user's
  from.give_back(std::move(done));
}

// With the mutex of that hold.
std::shared_ptr<Hold> CachedLock::on_change(const Hold& claimed, HandleState state,
                                            LossReason why) noexcept {
  std::shared_ptr<Hold> user;
  KeptClaimPtr ended;
  {
    const std::lock_guard lock(mutex_);
    if (!kept_ || &kept_->claimed() != &claimed) return nullptr;
    user = holder_.lock();
    if (state == HandleState::lost) ended = end();
  }
  if (user) user->become(state, why);
  return user;
}

std::shared_ptr<Hold> CachedLock::holder(const Hold& claimed) noexcept {
  const std::lock_guard lock(mutex_);
  const bool is_used = kept_ && &kept_->claimed() == &claimed && place_ == Place::used;
  return is_used ? holder_.lock() : nullptr;
}

void CachedLock::on_contended(const Hold& claimed) {
  KeptClaimPtr ended;
  {
    const std::lock_guard lock(mutex_);
    if (!kept_ || &kept_->claimed() != &claimed) return;
    if (!is_wanted()) in_a_row_ = 0;
    is_contended_ = true;
    if (place_ == Place::idle) ended = end();
  }
  if (ended) ended->give_back({});
}

std::function<void()> CachedLock::acquire(const std::shared_ptr<Store>& store,
                                          Acquisition::Request request,
                                          const std::shared_ptr<detail::AcquireHandler>& handler) {
  if (auto hold = take()) {
    if (request.diagnostics != nullptr) *request.diagnostics = {};
    tell(handler, {}, LockHandle(std::move(hold)));
    return {};
  }
  auto waiter = std::make_shared<Waiter>();
  waiter->number = ++last_waiter_;
  waiter->store = store;
  waiter->begun = store->env().now();
  waiter->request = std::move(request);
  waiter->request.tell_contention = true;
  waiter->handler = handler;
  KeptClaimPtr ended;
  bool is_free = false;
  {
    const std::lock_guard lock(mutex_);
    if (place_ == Place::idle) ended = end();  // it is not valid now
    is_free = place_ == Place::none && !is_led_ && waiters_.empty();
  }
  if (ended) ended->give_back({});
  if (is_free) {
    lead(waiter);
  } else {
    join(waiter);
  }
  return [weak = weak_from_this(), waiter = std::weak_ptr(waiter)] {
    const auto self = weak.lock();
    const auto who = waiter.lock();
    if (!self || !who) return;
    self->leave(who->number, errc::cancelled);
    if (const auto acquisition = who->acquisition.lock()) acquisition->cancel();
  };
}

void CachedLock::join(const WaiterPtr& waiter) {
  const auto number = waiter->number;
  const auto& limits = waiter->request.limits;
  const bool is_first = waiters_.empty();
  const auto& most = waiter->request.max_queue;
  const bool is_full = most && !limits.once && waiters_.size() >= *most;
  waiters_.emplace(number, waiter);
  std::shared_ptr<Hold> user;
  {
    const std::lock_guard lock(mutex_);
    ++waiting_;
    if (place_ == Place::used) user = holder_.lock();
  }
  if (is_first) waiter->store->keep(shared_from_this());
  if (limits.once) return time_out(number);
  if (is_full) return leave(number, errc::queue_full);
  if (user) user->note_contended();
  if (limits.deadline == kNever) return;
  waiter->timer = waiter->store->env().call_at(limits.deadline, [weak = weak_from_this(), number] {
    if (const auto self = weak.lock()) self->time_out(number);
  });
}

CachedLock::WaiterPtr CachedLock::take_out(Waiters::iterator place) {
  auto waiter = place->second;
  waiters_.erase(place);
  waiter->stop_clock();
  if (waiters_.empty()) waiter->store->dismiss(shared_from_this());
  const std::lock_guard lock(mutex_);
  --waiting_;
  return waiter;
}

void CachedLock::close() {
  while (!waiters_.empty()) leave(waiters_.begin()->first, errc::closed);
}

bool CachedLock::is_known_held() {
  {
    const std::lock_guard lock(mutex_);
    if (place_ != Place::none) return true;
  }
  const auto asking = is_led_ ? leading_.lock() : nullptr;
  return asking ? asking->error_at_deadline() == errc::timed_out : was_answered_;
}

void CachedLock::time_out(std::uint64_t number) {
  const auto found = waiters_.find(number);
  if (found == waiters_.end()) return;
  if (is_known_held()) return leave(number, errc::timed_out);
  // As any other wait, a short one lasts until the first answer of the store.
  const auto& waiter = *found->second;
  const bool is_short = waiter.store->env().now() < waiter.begun + kFirstAnswer;
  if (!is_short) return leave(number, errc::unavailable);
  ask_apart(take_out(found));
}

/// Harmless if the wait has ended.
void CachedLock::leave(std::uint64_t number, errc why) {
  const auto found = waiters_.find(number);
  if (found == waiters_.end()) return;
  const auto waiter = take_out(found);
  const auto& request = waiter->request;
  if (request.diagnostics != nullptr) {
    *request.diagnostics = {request.name, waiter->store->name(), {}};
    if (why == errc::timed_out) {
      request.diagnostics->server_text = waiter->store->holder_words(request);
    }
    if (why == errc::unavailable) {
      request.diagnostics->server_text = waiter->store->no_answer_words();
    }
    if (why == errc::queue_full) {
      request.diagnostics->server_text = queue_full_words(*request.max_queue, *request.max_queue);
    }
  }
  tell(waiter->handler, make_error_code(why), LockHandle());
}

void CachedLock::lead(const WaiterPtr& waiter) {
  auto acquisition = std::make_shared<Acquisition>(
      waiter->store, waiter->request,
      [self = shared_from_this(), waiter](error_code ec, LockHandle got) {
        self->on_led(waiter, ec, std::move(got));
      });
  waiter->acquisition = acquisition;
  leading_ = acquisition;
  is_led_ = true;
  waiter->store->acquire(std::move(acquisition));
}

void CachedLock::ask_apart(const WaiterPtr& waiter) {
  auto acquisition = std::make_shared<Acquisition>(
      waiter->store, waiter->request,
      [waiter](error_code ec, LockHandle got) { tell(waiter->handler, ec, std::move(got)); });
  waiter->acquisition = acquisition;
  waiter->store->acquire(std::move(acquisition));
}

void CachedLock::on_led(const WaiterPtr& waiter, error_code ec, LockHandle got) {
  is_led_ = false;
  was_answered_ = !ec || ec == errc::timed_out;
  std::shared_ptr<Hold> hold;
  if (!ec) {
    const auto acquisition = waiter->acquisition.lock();
    hold = adopt(got, acquisition && acquisition->has_waited());
  }
  if (!hold) lead_next_soon(waiter->store->env());
  tell(waiter->handler, ec, LockHandle(std::move(hold)));
}

std::shared_ptr<Hold> CachedLock::adopt(LockHandle& got, bool has_waited) {
  const auto claimed = HandleAccess::hold(got);
  const auto claim = claimed->claim();
  auto kept = std::make_shared<KeptClaim>(shared_from_this(), claimed);
  claimed->depend_on(std::make_shared<ClaimWatch>(weak_from_this(), *claimed));
  std::shared_ptr<Hold> hold;
  {
    const std::lock_guard lock(mutex_);
    kept_ = std::move(kept);
    // Under a gate the plan selects the next holder.
    is_contended_ =
        !claim->request().tell_contention || claim->is_contended() || claim->request().gate;
    was_waited_for_ = has_waited;
    hold = make_holder();
    in_a_row_ = claim->request().gate ? limits_.cohort : 0;
  }
  generation_.store(fork_generation(), std::memory_order_relaxed);
  detail::GrantAccess::take(got);
  return hold;
}

void CachedLock::lead_next_soon(Env& env) {
  env.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->lead_next();
  });
}

// One at a time: the other waiters wait for that one, not for the store.
void CachedLock::lead_next() {
  while (!is_led_ && !waiters_.empty()) {
    {
      const std::lock_guard lock(mutex_);
      if (place_ != Place::none) return;
    }
    lead(take_out(waiters_.begin()));
  }
}

void CachedLock::pass_on() {
  std::shared_ptr<Hold> hold;
  KeptClaimPtr ended;
  {
    const std::lock_guard lock(mutex_);
    if (place_ != Place::passing) return;
    // The waiter may have given up meanwhile, and the store may have reported an event.
    const auto what = next();
    if (what == Next::pass) {
      hold = make_holder();
      if (is_wanted()) ++in_a_row_;
    } else if (what == Next::keep) {
      keep_or_pass(what);
    } else {
      ended = end();
    }
  }
  if (ended) return ended->give_back({});
  if (!hold) return;
  const auto waiter = take_out(waiters_.begin());
  if (!waiters_.empty()) hold->note_contended();
  if (waiter->request.diagnostics != nullptr) *waiter->request.diagnostics = {};
  tell(waiter->handler, {}, LockHandle(std::move(hold)));
}

void CachedLock::arm(Env& env, TimePoint when) {
  env.call_at(when, [weak = weak_from_this(), &env] {
    if (const auto self = weak.lock()) self->on_timer(env);
  });
}

// One timer while the lock is acquired and released again and again.
void CachedLock::on_timer(Env& env) {
  KeptClaimPtr ended;
  auto again = kNever;
  {
    const std::lock_guard lock(mutex_);
    is_armed_ = false;
    if (place_ != Place::idle) return;
    const auto over = idle_since_ + limits_.cache;
    if (env.now() >= over) {
      ended = end();
    } else {
      is_armed_ = true;
      again = over;
    }
  }
  if (ended) return ended->give_back({});
  arm(env, again);
}

}  // namespace dlock::core
