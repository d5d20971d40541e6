// SPDX-License-Identifier: Apache-2.0
//
// Replaces a holder at the front of its queue by the adopter of its grant.
#include <algorithm>
#include <utility>

#include "backends/memory/store.hpp"

namespace dlock::memory {

bool SharedStore::offer(const std::string& lock, const std::string& owner_id, std::string proof,
                        TimePoint until) {
  const std::lock_guard guard(mutex_);
  auto& queue = queues_[lock];
  if (!queue.record.empty() || queue.entries.empty()) return false;
  auto& holder = queue.entries.front();
  if (holder.owner.id != owner_id || holder.token == 0 || holder.broken) return false;
  holder.proof = std::move(proof);
  holder.offered_until = until;
  return true;
}

SharedStore::Adopted SharedStore::adopt(const ClaimRequest& request, TimePoint now, Wake wake) {
  Adopted adopted;
  Wake replaced;
  {
    const std::lock_guard guard(mutex_);
    adopted = adopt_locked(queues_[request.name], request, now, wake);
    if (adopted.token != 0) replaced = std::move(wake);
  }
  if (replaced) replaced();
  tell_watchers(request.name);
  return adopted;
}

/// `wake` becomes the one of whose place was taken, if one was.
SharedStore::Adopted SharedStore::adopt_locked(Queue& queue, const ClaimRequest& request,
                                               TimePoint now, Wake& wake) {
  if (queue.entries.empty() || !queue.record.empty()) return {};
  auto& holder = queue.entries.front();
  if (holder.owner.id == request.owner.id) {
    wake = nullptr;
    return {holder.token, {}};
  }
  const auto& exported = *request.adoption;
  const bool is_it = holder.owner.id == exported.owner_id && holder.token == exported.token &&
                     !holder.proof.empty() && holder.proof == exported.proof;
  if (!is_it || now > holder.offered_until) return {0, holder.token};
  queue.last_token = std::max(queue.last_token, request.min_token) + 1;
  Entry entry{request.owner, Mode::exclusive, queue.last_token, now, std::exchange(wake, nullptr)};
  wake = std::exchange(holder, std::move(entry)).wake;
  return {queue.last_token, {}};
}

}  // namespace dlock::memory
