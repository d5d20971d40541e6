// SPDX-License-Identifier: Apache-2.0
#include "backends/memory/semaphores.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "dlock/spi/error.hpp"

namespace dlock::memory {
namespace {

auto find_record(auto& entries, const std::string& owner_id) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.owner.id == owner_id; });
}

PermitHolder described(const Owner& owner, std::uint32_t permits) {
  PermitHolder holder;
  holder.owner = owner;
  holder.permits = permits;
  return holder;
}

}  // namespace

std::uint64_t Semaphores::held(const Entries& entries) {
  std::uint64_t sum = 0;
  for (const auto& entry : entries) sum += entry.token != 0 ? entry.permits : 0;
  return sum;
}

bool Semaphores::may_have(const One& semaphore, Entries::const_iterator entry) {
  const bool waits_behind = std::any_of(semaphore.entries.begin(), entry,
                                        [](const Entry& other) { return other.token == 0; });
  return !waits_behind && held(semaphore.entries) + entry->permits <= semaphore.limit;
}

Failure Semaphores::refusal(const One& semaphore, const ClaimRequest& request) {
  if (semaphore.limit == 0 && request.limit == 0) return unknown_semaphore(request.name);
  if (semaphore.limit == 0) return {};
  if (request.limit != 0 && request.limit != semaphore.limit) {
    return wrong_limit(request.name, request.limit, semaphore.limit);
  }
  if (request.permits <= semaphore.limit) return {};
  return too_many_permits(request.name, request.permits, semaphore.limit);
}

Semaphores::Grant Semaphores::claim(const ClaimRequest& request, TimePoint now, Wake wake) {
  std::vector<Wake> wakes;
  Grant grant;
  {
    const std::lock_guard guard(mutex_);
    grant = claim_locked(request, now, std::move(wake), wakes);
  }
  for (const auto& each : wakes) each();
  return grant;
}

Semaphores::Grant Semaphores::claim_locked(const ClaimRequest& request, TimePoint now, Wake wake,
                                           std::vector<Wake>& wakes) {
  auto& semaphore = semaphores_[request.name];
  auto& entries = semaphore.entries;
  auto mine = find_record(entries, request.owner.id);
  if (mine != entries.end() && mine->token != 0) return {true, mine->token, {}};
  if (auto refused = refusal(semaphore, request); refused.error) {
    if (mine != entries.end()) {
      entries.erase(mine);
      wake_next(semaphore, wakes);
    }
    return {false, 0, std::move(refused)};
  }
  if (semaphore.limit == 0) semaphore.limit = request.limit;
  if (mine == entries.end()) {
    entries.push_back(Entry{request.owner, request.permits, 0, now, std::move(wake)});
    mine = std::prev(entries.end());
  }
  if (!may_have(semaphore, mine)) {
    if (!request.queue) entries.erase(mine);
    return {};
  }
  mine->token = semaphore.last_token = std::max(semaphore.last_token, request.min_token) + 1;
  mine->since = now;
  const auto token = mine->token;
  wake_next(semaphore, wakes);
  return {true, token, {}};
}

bool Semaphores::holds(const std::string& name, const std::string& owner_id) const {
  const std::lock_guard guard(mutex_);
  const auto found = semaphores_.find(name);
  if (found == semaphores_.end()) return false;
  const auto mine = find_record(found->second.entries, owner_id);
  return mine != found->second.entries.end() && mine->token != 0;
}

/// Wakes the waiters that may have their permits now and were not notified yet.
void Semaphores::wake_next(const One& semaphore, std::vector<Wake>& wakes) {
  auto taken = held(semaphore.entries);
  for (const auto& entry : semaphore.entries) {
    if (entry.token != 0) continue;
    taken += entry.permits;
    if (taken > semaphore.limit) return;
    wakes.push_back(entry.wake);
  }
}

bool Semaphores::release(const std::string& name, const std::string& owner_id) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& semaphore = semaphores_[name];
    const auto mine = find_record(semaphore.entries, owner_id);
    if (mine == semaphore.entries.end()) return false;
    semaphore.entries.erase(mine);
    wake_next(semaphore, wakes);
  }
  for (const auto& wake : wakes) wake();
  return true;
}

std::optional<Break> Semaphores::mark_of(const std::string& name,
                                         const std::string& owner_id) const {
  const std::lock_guard guard(mutex_);
  const auto found = semaphores_.find(name);
  if (found == semaphores_.end()) return std::nullopt;
  const auto mine = find_record(found->second.entries, owner_id);
  return mine == found->second.entries.end() ? std::nullopt : mine->broken;
}

std::optional<std::uint64_t> Semaphores::evict(const std::string& name, std::uint64_t token,
                                               const Break* mark) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& semaphore = semaphores_[name];
    auto& entries = semaphore.entries;
    const auto holds = [](const Entry& entry) { return entry.token != 0; };
    const auto any = std::find_if(entries.begin(), entries.end(), holds);
    if (any == entries.end()) return 0;
    const auto holder = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return holds(entry) && entry.token == token;
    });
    if (holder == entries.end()) return any->token;
    if (mark == nullptr) {
      wakes.push_back(std::move(holder->wake));
      entries.erase(holder);
      wake_next(semaphore, wakes);
    } else if (!holder->broken) {
      holder->broken = *mark;
      wakes.push_back(holder->wake);
    }
  }
  for (const auto& wake : wakes) wake();
  return std::nullopt;
}

std::vector<std::string> Semaphores::names() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> all;
  for (const auto& [name, semaphore] : semaphores_) {
    if (semaphore.limit != 0) all.push_back(name);
  }
  return all;
}

SemaphoreStatus Semaphores::inspect(const std::string& name, TimePoint now) const {
  const std::lock_guard guard(mutex_);
  SemaphoreStatus status;
  status.name = name;
  const auto found = semaphores_.find(name);
  if (found == semaphores_.end()) return status;
  if (found->second.limit != 0) status.limit = found->second.limit;
  for (const auto& entry : found->second.entries) {
    auto holder = described(entry.owner, entry.permits);
    if (entry.token == 0) {
      status.waiting.push_back(std::move(holder));
      continue;
    }
    holder.token = entry.token;
    holder.held_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - entry.since);
    holder.broken = entry.broken;
    status.holders.push_back(std::move(holder));
  }
  return status;
}

void Semaphores::set_limit(const std::string& name, std::uint32_t limit) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& semaphore = semaphores_[name];
    semaphore.limit = limit;
    for (const auto& entry : semaphore.entries) {
      if (entry.token == 0) wakes.push_back(entry.wake);
    }
  }
  for (const auto& wake : wakes) wake();
}

}  // namespace dlock::memory
