// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/server.hpp"

#include <algorithm>

#include "core/planted.hpp"

namespace dlock::simulation::migration {

Server::Lock& Server::lock(const std::string& name) {
  const auto [entry, made] = locks_.try_emplace(name);
  if (made) entry->second.last_token = first_token_;
  return entry->second;
}

Server::Grant Server::claim(const ClaimRequest& request, TimePoint now) {
  auto& at = lock(request.name);
  if (!at.record.empty() && !DLOCK_PLANTED("move_seal_beside_the_lock")) {
    return {ClaimStatus::sealed, 0, at.record};
  }
  if (holds(at, request.owner.id, now)) {
    at.expires = now + request.lease;
    return {ClaimStatus::granted, at.token, {}};
  }
  if (holds(at, at.owner.id, now)) return {ClaimStatus::busy, 0, {}};
  at.last_token = std::max(at.last_token, request.min_token) + 1;
  // Host and pid are those of this very process: in a trace they would differ from run to run.
  at.owner = {request.owner.id, {}, 0, request.owner.app};
  at.token = at.last_token;
  at.expires = now + request.lease;
  return {ClaimStatus::granted, at.token, {}};
}

bool Server::extend(const ClaimRequest& request, TimePoint now) {
  auto& at = lock(request.name);
  if (!holds(at, request.owner.id, now)) return false;
  at.expires = now + request.lease;
  return true;
}

bool Server::release(const ClaimRequest& request, TimePoint now) {
  auto& at = lock(request.name);
  if (!holds(at, request.owner.id, now)) return false;
  at.owner = {};
  return true;
}

LockStatus Server::inspect(const std::string& name, TimePoint now) const {
  LockStatus status;
  status.name = name;
  const auto found = locks_.find(name);
  if (found == locks_.end()) return status;
  const auto& at = found->second;
  if (!holds(at, at.owner.id, now)) return status;
  status.held = true;
  status.token = at.token;
  status.owner = at.owner;
  status.remaining = std::chrono::duration_cast<std::chrono::milliseconds>(at.expires - now);
  return status;
}

std::vector<LockStatus> Server::list(const std::string& prefix, TimePoint now) const {
  std::vector<LockStatus> all;
  for (const auto& [name, lock] : locks_) {
    if (!name.starts_with(prefix) || !holds(lock, lock.owner.id, now)) continue;
    all.push_back(inspect(name, now));
  }
  return all;
}

std::map<std::string, Owner> Server::wipe(TimePoint now) {
  std::map<std::string, Owner> holders;
  for (const auto& [name, lock] : locks_) {
    if (holds(lock, lock.owner.id, now)) holders.emplace(name, lock.owner);
  }
  locks_.clear();
  notes_.clear();
  first_token_ = 0;
  return holders;
}

std::optional<std::string> Server::record(const std::string& name) const {
  const auto found = locks_.find(name);
  if (found == locks_.end() || found->second.record.empty()) return std::nullopt;
  return found->second.record;
}

std::optional<std::string> Server::lagging_record(const std::string& name, TimePoint now) const {
  const auto found = locks_.find(name);
  if (found == locks_.end()) return std::nullopt;
  std::optional<std::string> old;
  for (const auto& [since, record] : found->second.records) {
    if (since + kReplicaLag > now) break;
    old = record.empty() ? std::nullopt : std::optional(record);
  }
  return old;
}

void Server::write(Lock& lock, const std::string& record, TimePoint now) {
  lock.record = record;
  lock.records.emplace_back(now, record);
}

Server::Exchange Server::seal(const ClaimRequest& request, std::uint64_t token,
                              const std::string& record, TimePoint now) {
  auto& at = lock(request.name);
  const bool ours = (holds(at, request.owner.id, now) && at.token == token) ||
                    DLOCK_PLANTED("move_seal_without_compare");
  if (!at.record.empty() || !ours) return {false, this->record(request.name)};
  at.owner = {};
  write(at, record, now);
  return {true, std::nullopt};
}

Server::Exchange Server::set_record(const std::string& name, const std::string& from,
                                    const std::optional<std::string>& to, std::uint64_t min_token,
                                    TimePoint now) {
  auto& at = lock(name);
  if (at.record != from || from.empty()) return {false, record(name)};
  write(at, to.value_or(std::string()), now);
  if (!to) at.last_token = std::max(at.last_token, min_token);
  return {true, std::nullopt};
}

bool Server::raise(const ClaimRequest& request, std::uint64_t min_token, TimePoint now) {
  auto& at = lock(request.name);
  if (!holds(at, request.owner.id, now)) return false;
  at.last_token = std::max(at.last_token, min_token);
  return true;
}

std::optional<std::string> Server::note(const std::string& key) const {
  const auto found = notes_.find(key);
  if (found == notes_.end()) return std::nullopt;
  return found->second;
}

Server::Exchange Server::set_note(const std::string& key, const std::optional<std::string>& from,
                                  const std::optional<std::string>& to) {
  const auto now_there = note(key);
  if (now_there.value_or(std::string()) != from.value_or(std::string())) return {false, now_there};
  if (to && !to->empty()) {
    notes_[key] = *to;
  } else {
    notes_.erase(key);
  }
  return {true, std::nullopt};
}

std::string Server::forget(const std::string& name) {
  return std::exchange(lock(name).owner, Owner()).id;
}

}  // namespace dlock::simulation::migration
