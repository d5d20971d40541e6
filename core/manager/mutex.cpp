// SPDX-License-Identifier: Apache-2.0
#include "dlock/mutex.hpp"

#include "core/manager/lock_context.hpp"
#include "core/manager/reentry.hpp"
#include "dlock/detail/grant.hpp"

namespace dlock::inline v0 {
namespace {

[[noreturn]] void fail(errc error, const DistributedLock& lock) {
  throw LockError(make_error_code(error), {lock.name(), {}, {}});
}

}  // namespace

Mutex::Mutex(std::shared_ptr<DistributedLock> lock) : lock_(std::move(lock)) {}

void Mutex::lock() { enter(std::nullopt, false); }

bool Mutex::try_lock() { return enter(std::chrono::milliseconds(0), true); }

bool Mutex::try_lock_within(std::chrono::milliseconds wait) { return enter(wait, true); }

bool Mutex::enter(std::optional<std::chrono::milliseconds> wait, bool try_only) {
  auto& reentry = lock_->context().reentry();
  if (reentry.is_foreign()) fail(errc::closed, *lock_);
  if (auto* entry = reentry.find(lock_->name())) {
    if (entry->handle.state() == HandleState::lost) fail(errc::lock_lost, *lock_);
    ++entry->depth;
    return true;
  }
  AcquireOptions options;
  options.wait = wait;
  auto handle = try_only ? lock_->try_acquire(options) : lock_->acquire(options);
  if (!handle) return false;
  if (const auto& grant = detail::GrantAccess::grant(*handle)) grant->hand_to_mutex();
  reentry.enter(lock_->name(), std::move(*handle));
  return true;
}

void Mutex::unlock() {
  error_code ec;
  unlock(ec);
  if (ec == errc::operation_not_permitted) fail(errc::operation_not_permitted, *lock_);
}

void Mutex::unlock(error_code& ec) {
  ec = {};
  auto& reentry = lock_->context().reentry();
  if (reentry.is_foreign()) {
    ec = make_error_code(errc::closed);
    return;
  }
  auto* entry = reentry.find(lock_->name());
  if (entry == nullptr) {
    ec = make_error_code(errc::operation_not_permitted);
    return;
  }
  if (--entry->depth > 0) return entry->handle.check(ec);
  auto handle = reentry.leave(lock_->name());
  ec = handle.release();
}

LockHandle* Mutex::held() const {
  auto& reentry = lock_->context().reentry();
  if (reentry.is_foreign()) return nullptr;
  auto* entry = reentry.find(lock_->name());
  return entry == nullptr ? nullptr : &entry->handle;
}

}  // namespace dlock::inline v0
