// SPDX-License-Identifier: Apache-2.0
#include "core/manager/entering.hpp"

#include "core/manager/lock_context.hpp"
#include "core/manager/reentry.hpp"
#include "dlock/detail/grant.hpp"

namespace dlock::core {

void fail(errc error, const DistributedLock& lock) {
  throw LockError(make_error_code(error), {lock.name(), {}, {}});
}

bool enter(DistributedLock& lock, Mode mode, std::optional<std::chrono::milliseconds> wait,
           bool try_only, const Call& call) {
  auto& reentry = lock.context().reentry();
  if (reentry.is_foreign()) fail(errc::closed, lock);
  if (auto* entry = reentry.find(lock.name())) {
    if (entry->handle.state() == HandleState::lost) fail(errc::lock_lost, lock);
    // It would wait for itself.
    const bool is_upgrade = mode == Mode::exclusive && entry->depth == 0;
    if (is_upgrade) fail(errc::operation_not_permitted, lock);
    ++entry->depth_of(mode);
    return true;
  }
  AcquireOptions options;
  options.wait = wait;
  options.mode = mode;
  const CallScope scope(call);
  auto handle = try_only ? lock.try_acquire(options) : lock.acquire(options);
  if (!handle) return false;
  if (const auto& grant = detail::GrantAccess::grant(*handle)) grant->hand_to_mutex();
  reentry.enter(lock.name(), std::move(*handle), mode);
  return true;
}

error_code leave(DistributedLock& lock, Mode mode) {
  auto& reentry = lock.context().reentry();
  if (reentry.is_foreign()) return make_error_code(errc::closed);
  auto* entry = reentry.find(lock.name());
  if (entry == nullptr || entry->depth_of(mode) == 0) {
    return make_error_code(errc::operation_not_permitted);
  }
  --entry->depth_of(mode);
  if (entry->depth + entry->shared_depth == 0) return reentry.leave(lock.name()).release();
  error_code ec;
  // Its last writer's part is over, and a reader's is left.
  if (mode == Mode::exclusive && entry->depth == 0) {
    ec = entry->handle.downgrade();
    if (ec == errc::not_supported) ec = {};  // more than is asked for
  }
  if (!ec) entry->handle.check(ec);
  return ec;
}

error_code step_down(DistributedLock& lock) {
  auto& reentry = lock.context().reentry();
  if (reentry.is_foreign()) return make_error_code(errc::closed);
  auto* entry = reentry.find(lock.name());
  if (entry == nullptr || entry->depth == 0) return make_error_code(errc::operation_not_permitted);
  error_code ec;
  if (entry->depth == 1) ec = entry->handle.downgrade();
  if (ec == errc::not_supported) return ec;
  --entry->depth;
  ++entry->shared_depth;
  return ec;
}

LockHandle* held_here(const DistributedLock& lock) {
  auto& reentry = lock.context().reentry();
  if (reentry.is_foreign()) return nullptr;
  auto* entry = reentry.find(lock.name());
  return entry == nullptr ? nullptr : &entry->handle;
}

}  // namespace dlock::core
