// SPDX-License-Identifier: Apache-2.0
//
// How a MultiLock is taken: each lock's own acquire, one after the other, in one order for
// everybody (ordered acquisition: Havender, Avoiding deadlock in multitasking systems, 1968).
#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/loop/driving.hpp"
#include "core/manager/multi_grant.hpp"
#include "dlock/clock.hpp"
#include "dlock/distributed_lock.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::inline v0 {
namespace {

using Locks = std::vector<std::shared_ptr<DistributedLock>>;
using std::chrono::milliseconds;

/// No lock's name has an empty part, so it is none of a single lock.
constexpr std::string_view kBetweenNames = " // ";

void flatten(Locks locks, Locks& all) {
  for (auto& lock : locks) {
    if (const auto* const several = dynamic_cast<const MultiLock*>(lock.get())) {
      flatten(several->locks(), all);
    } else {
      all.push_back(std::move(lock));
    }
  }
}

bool is_same(const DistributedLock& one, const DistributedLock& other) {
  return &one == &other || (one.name() == other.name() && &one.context() == &other.context());
}

[[noreturn]] void refuse_locks(std::string name, std::string why) {
  throw LockError(make_error_code(errc::invalid_argument), {std::move(name), {}, std::move(why)});
}

/// One acquire under way. Its parts answer one after the other; `mutex_` protects a cancel.
class Gathering final : public std::enable_shared_from_this<Gathering> {
 public:
  Gathering(Locks locks, const std::string& name, bool one_loop, AcquireOptions options,
            detail::AcquireHandler handler)
      : locks_(std::move(locks)),
        one_loop_(one_loop),
        options_(options),
        handler_(std::move(handler)),
        grant_(std::make_shared<core::MultiGrant>(name, locks_.size(), one_loop, options.mode)) {}

  /// `wait`: of all together.
  void begin(std::optional<milliseconds> wait) {
    is_once_ = wait && wait->count() <= 0;
    // A wait so long that the clock would overflow is one for ever.
    if (wait && !is_once_ && *wait < std::chrono::hours(24 * 365 * 10)) {
      const auto now = BoottimeClock::now();
      deadline_ = now + *wait;
      last_ask_ = std::max(deadline_, now + kFirstAnswer);
    }
    grant_->on_state([weak = weak_from_this()](HandleState state, LossReason) {
      const auto self = weak.lock();
      if (self && state == HandleState::lost) self->cancel();
    });
    try {
      ask_next();
    } catch (const std::bad_alloc&) {
      if (handler_) grant_->release({});  // else its handle has released it
      throw;
    }
  }

  void cancel() {
    detail::Canceller pending;
    {
      const std::lock_guard lock(mutex_);
      is_cancelled_ = true;
      pending = std::move(pending_);  // to be called once
    }
    if (pending) pending();
  }

 private:
  void ask_next();
  void ask_or_end();
  void ask(DistributedLock& lock, AcquireOptions options);
  void on_answer(error_code ec, LockHandle part);
  bool fail_if_lost();
  void fail(error_code ec);
  void fail(error_code ec, std::string text);
  void give_up(const std::exception& error);
  void tell(error_code ec, LockHandle handle);
  bool is_cancelled() {
    const std::lock_guard lock(mutex_);
    return is_cancelled_;
  }

  const Locks locks_;
  const bool one_loop_;
  const AcquireOptions options_;
  detail::AcquireHandler handler_;
  const std::shared_ptr<core::MultiGrant> grant_;
  bool is_once_ = false;
  TimePoint deadline_ = kNever;
  TimePoint last_ask_ = kNever;  ///< no lock is asked for after it
  std::size_t next_ = 0;         ///< of locks_, to be asked
  Diagnostics diagnostics_;      ///< the pending one's

  std::mutex mutex_;
  bool is_cancelled_ = false;
  std::size_t answered_ = 0;
  detail::Canceller pending_;
};

// In the caller's thread std::bad_alloc leaves begin(). On a loop it ends the process.
void Gathering::ask_next() {
  try {
    ask_or_end();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    if (!handler_) throw;  // its own
    give_up(error);
  }
}

void Gathering::ask_or_end() {
  if (fail_if_lost()) return;
  if (next_ == locks_.size()) return tell({}, LockHandle(grant_));
  if (is_cancelled()) return fail(make_error_code(errc::cancelled), {});
  auto options = options_;
  options.diagnostics = &diagnostics_;
  if (is_once_) {
    options.wait = milliseconds(0);
  } else if (deadline_ != kNever) {
    // A short wait lasts until the first answer: only the store knows who holds the lock.
    const auto now = BoottimeClock::now();
    if (now > last_ask_) {
      return fail(make_error_code(errc::unavailable),
                  "the wait was over before the store was asked");
    }
    const auto left = std::max<Duration>(deadline_ - now, milliseconds(1));
    options.wait = std::chrono::ceil<milliseconds>(left);
  }
  ask(*locks_[next_], options);
}

// The handler may be called in start_acquire(), ask the next one there, and so on to the end.
void Gathering::ask(DistributedLock& lock, AcquireOptions options) {
  const auto at = next_++;
  detail::Canceller canceller;
  {
    // Who waits for all may run the loop meanwhile only if it answers for all. The first one is
    // asked for on his thread, those after it on a loop.
    std::optional<core::Driving::Intent> apart;
    if (at > 0 || !one_loop_) apart.emplace();
    canceller =
        lock.start_acquire(options, [self = shared_from_this()](error_code ec, LockHandle part) {
          self->on_answer(ec, std::move(part));
        });
  }
  {
    const std::lock_guard guard(mutex_);
    if (answered_ != at) return;
    if (!is_cancelled_) {
      pending_ = std::move(canceller);
      return;
    }
  }
  canceller();
}

void Gathering::on_answer(error_code ec, LockHandle part) {
  {
    const std::lock_guard lock(mutex_);
    ++answered_;
    pending_ = {};
  }
  try {
    if (ec) {
      if (!fail_if_lost()) fail(ec);
      return;
    }
    if (!part) return fail(make_error_code(errc::protocol));
    grant_->add(part);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    if (!handler_) throw;
    return give_up(error);
  }
  ask_next();
}

bool Gathering::fail_if_lost() {
  const auto* const lost = grant_->lost_part();
  if (lost == nullptr) return false;
  const auto why = lost->reason();
  diagnostics_ = {lost->identity().name, lost->identity().store, to_string(why)};
  fail(make_error_code(why == LossReason::closed ? errc::closed : errc::lock_lost));
  return true;
}

void Gathering::give_up(const std::exception& error) {
  auto failure = failure_of(error);
  diagnostics_.server_text = std::move(failure.text);
  grant_->release({});
  tell(failure.error, LockHandle());
}

/// Of the one that was to be asked next.
void Gathering::fail(error_code ec, std::string text) {
  const auto& lock = *locks_[next_];
  diagnostics_ = {lock.name(), lock.store(), std::move(text)};
  fail(ec);
}

/// Of the one that the diagnostics name, or that has answered last.
void Gathering::fail(error_code ec) {
  if (diagnostics_.lock.empty()) {
    diagnostics_.lock = locks_[next_ - 1]->name();
    diagnostics_.store = locks_[next_ - 1]->store();
  }
  grant_->release({});
  tell(ec, LockHandle());
}

void Gathering::tell(error_code ec, LockHandle handle) {
  if (!ec) diagnostics_ = {};
  if (options_.diagnostics != nullptr) *options_.diagnostics = std::move(diagnostics_);
  if (auto handler = std::exchange(handler_, {})) handler(ec, std::move(handle));
}

}  // namespace

MultiLock::MultiLock(Locks locks) {
  flatten(std::move(locks), locks_);
  if (locks_.empty()) refuse_locks({}, "there is no lock to take");
  if (std::find(locks_.begin(), locks_.end(), nullptr) != locks_.end()) {
    refuse_locks({}, "one of the locks is null");
  }
  std::stable_sort(locks_.begin(), locks_.end(), [](const auto& one, const auto& other) {
    return std::tie(one->name(), one->store()) < std::tie(other->name(), other->store());
  });
  common_context_ = &locks_.front()->context();
  for (auto lock = locks_.begin(); lock != locks_.end(); ++lock) {
    const auto& of = **lock;
    for (auto other = lock; other != locks_.begin() && (*--other)->name() == of.name();) {
      if (is_same(**other, of)) refuse_locks(of.name(), "it is there twice");
    }
    if (&of.context() != common_context_) common_context_ = nullptr;
    if (!name_.empty()) name_ += kBetweenNames;
    name_ += of.name();
    const bool is_new = std::none_of(
        locks_.begin(), lock, [&of](const auto& other) { return other->store() == of.store(); });
    if (!is_new) continue;
    if (!store_.empty() && !of.store().empty()) store_ += ", ";
    store_ += of.store();
  }
}

MultiLock::~MultiLock() = default;

std::optional<milliseconds> MultiLock::default_wait() const noexcept {
  std::optional<milliseconds> shortest;
  for (const auto& lock : locks_) {
    const auto wait = lock->default_wait();
    if (wait && (!shortest || *wait < *shortest)) shortest = wait;
  }
  return shortest;
}

detail::LockContext& MultiLock::context() const {
  return common_context_ != nullptr ? *common_context_ : DistributedLock::context();
}

detail::Canceller MultiLock::start_acquire(AcquireOptions options, detail::AcquireHandler handler) {
  if (locks_.size() == 1) return locks_.front()->start_acquire(options, std::move(handler));
  const auto all = std::make_shared<Gathering>(locks_, name_, common_context_ != nullptr, options,
                                               std::move(handler));
  detail::Canceller canceller = [weak = std::weak_ptr(all)] {
    if (const auto still = weak.lock()) still->cancel();
  };
  all->begin(options.wait ? options.wait : default_wait());
  return canceller;
}

}  // namespace dlock::inline v0
