// SPDX-License-Identifier: Apache-2.0
#include "core/manager/nesting.hpp"

#include <memory>
#include <vector>

#include "core/manager/engine.hpp"
#include "core/manager/multi_grant.hpp"
#include "core/process/of_thread.hpp"
#include "core/store/hold.hpp"
#include "dlock/detail/grant.hpp"

namespace dlock::core {

namespace {

constexpr std::size_t kMostHeld = 16;

struct Held {
  std::weak_ptr<detail::Grant> grant;
  Call call;
};

struct Thread {
  std::vector<Held> held;
};

// Without a destructor: it is read until the thread's end.
thread_local const Call* present_call = nullptr;

Call call_now() noexcept { return present_call != nullptr ? *present_call : Call(); }

bool is_given_back(const Held& held) noexcept {
  const auto grant = held.grant.lock();
  if (!grant) return true;
  const auto state = grant->state();
  return state != HandleState::held && state != HandleState::suspect;
}

/// Visits each lock in it, except a semaphore's.
template <class Visit>
void for_each_hold(const std::shared_ptr<detail::Grant>& grant, Visit visit) {
  if (const auto* const several = dynamic_cast<const MultiGrant*>(grant.get())) {
    for (const auto& part : several->parts()) for_each_hold(part, visit);
  } else if (const auto* const hold = dynamic_cast<const Hold*>(grant.get())) {
    if (hold->identity().permits == 0) visit(*hold);
  }
}

void note_one(const Thread& thread, const DistributedLock& lock, const Call& call) {
  auto* const engine = dynamic_cast<Engine*>(&lock.context());
  auto* const order = engine != nullptr ? engine->lock_order() : nullptr;
  if (order == nullptr) return;
  for (const auto& held : thread.held) {
    const auto grant = held.grant.lock();
    if (!grant) continue;
    for_each_hold(grant, [&](const Hold& hold) {
      if (&hold.host() != engine) return;
      order->note(hold.identity().name, held.call, lock.name(), call);
    });
  }
}

bool waits(const DistributedLock& lock, const AcquireOptions& options) {
  const auto wait = options.wait ? options.wait : lock.default_wait();
  return !wait || wait->count() > 0;
}

}  // namespace

void note_asked(const DistributedLock& lock, const AcquireOptions& options) {
  auto* const thread = OfThread<Thread>::here();
  if (thread == nullptr || thread->held.empty()) return;
  std::erase_if(thread->held, is_given_back);
  const bool is_watched = !thread->held.empty() && thread->held.size() < kMostHeld;
  if (!is_watched || !waits(lock, options)) return;
  if (const auto* const several = dynamic_cast<const MultiLock*>(&lock)) {
    for (const auto& part : several->locks()) note_one(*thread, *part, call_now());
  } else {
    note_one(*thread, lock, call_now());
  }
}

void note_taken(const LockHandle& handle) {
  auto* const thread = OfThread<Thread>::here();
  const auto& grant = detail::GrantAccess::grant(handle);
  if (thread == nullptr || !grant || thread->held.size() >= kMostHeld) return;
  thread->held.push_back({grant, call_now()});
}

CallScope::CallScope(const Call& call) noexcept { present_call = &call; }
CallScope::~CallScope() { present_call = nullptr; }

}  // namespace dlock::core
