// SPDX-License-Identifier: Apache-2.0
#include "dlock/mutex.hpp"

#include "core/manager/entering.hpp"

namespace dlock::inline v0 {

namespace {
constexpr core::Call kMutexCall{"a Mutex"};
constexpr core::Call kSharedMutexCall{"a SharedMutex"};
}  // namespace

Mutex::Mutex(std::shared_ptr<DistributedLock> lock) : lock_(std::move(lock)) {}

void Mutex::lock() { core::enter(*lock_, Mode::exclusive, std::nullopt, false, kMutexCall); }

bool Mutex::try_lock() {
  return core::enter(*lock_, Mode::exclusive, std::chrono::milliseconds(0), true, kMutexCall);
}

bool Mutex::try_lock_within(std::chrono::milliseconds wait) {
  return core::enter(*lock_, Mode::exclusive, wait, true, kMutexCall);
}

void Mutex::unlock() {
  const auto ec = core::leave(*lock_, Mode::exclusive);
  if (ec == errc::operation_not_permitted) core::fail(errc::operation_not_permitted, *lock_);
}

void Mutex::unlock(error_code& ec) { ec = core::leave(*lock_, Mode::exclusive); }

LockHandle* Mutex::held() const { return core::held_here(*lock_); }

SharedMutex::SharedMutex(std::shared_ptr<DistributedLock> lock) : lock_(std::move(lock)) {}

bool SharedMutex::enter(Mode mode, std::optional<std::chrono::milliseconds> wait, bool try_only) {
  return core::enter(*lock_, mode, wait, try_only, kSharedMutexCall);
}

void SharedMutex::unlock() {
  const auto ec = core::leave(*lock_, Mode::exclusive);
  if (ec == errc::operation_not_permitted) core::fail(errc::operation_not_permitted, *lock_);
}

void SharedMutex::unlock(error_code& ec) { ec = core::leave(*lock_, Mode::exclusive); }

void SharedMutex::unlock_shared() {
  const auto ec = core::leave(*lock_, Mode::shared);
  if (ec == errc::operation_not_permitted) core::fail(errc::operation_not_permitted, *lock_);
}

void SharedMutex::unlock_shared(error_code& ec) { ec = core::leave(*lock_, Mode::shared); }

void SharedMutex::unlock_and_lock_shared() {
  const auto ec = core::step_down(*lock_);
  if (ec && ec != errc::unavailable) throw LockError(ec, {lock_->name(), {}, {}});
}

void SharedMutex::unlock_and_lock_shared(error_code& ec) { ec = core::step_down(*lock_); }

LockHandle* SharedMutex::held() const { return core::held_here(*lock_); }

}  // namespace dlock::inline v0
