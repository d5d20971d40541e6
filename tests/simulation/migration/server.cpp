// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/migration/server.hpp"
#include "tests/simulation/planted.hpp"

#include <algorithm>

namespace dlock::simulation::migration {

Server::Lock& Server::lock(const std::string& name) {
  const auto [entry, made] = locks_.try_emplace(name);
  if (made) entry->second.last_token = first_token_;
  return entry->second;
}

std::optional<std::string> Server::another_gate(const GateCheck* expected) const {
  if (expected == nullptr) return std::nullopt;
  auto text = note(expected->key).value_or(std::string());
  if (text == expected->text) return std::nullopt;
  return text;
}

void Server::leave(Lock& lock, const std::string& owner) {
  std::erase_if(lock.waiting, [&](const Place& place) { return place.id == owner; });
}

Server::Grant Server::wait(Lock& lock, const ClaimRequest& request, TimePoint now) const {
  if (!ways_.queues || !request.queue) return {ClaimStatus::busy, 0, {}};
  lock.waiting.push_back(
      {request.owner.id, {request.owner.id, {}, 0, request.owner.app}, now + request.lease});
  return {ClaimStatus::waiting, 0, {}};
}

Server::Grant Server::seal_at_once(Lock& lock, const ClaimRequest& request, TimePoint now) {
  lock.last_token = std::max(lock.last_token, request.min_token) + 1;
  const auto token = std::to_string(lock.last_token);
  auto record = request.gate->seal;
  for (auto at = record.find(kTokenPlace); at != std::string::npos;
       at = record.find(kTokenPlace, at + token.size())) {
    record.replace(at, kTokenPlace.size(), token);
  }
  write(lock, record, now);
  ++sealed_at_once_;
  return {ClaimStatus::sealed, 0, record};
}

Server::Grant Server::claim(const ClaimRequest& request, TimePoint now) {
  auto& at = lock(request.name);
  const bool is_beside = is_planted("move_seal_beside_the_lock");
  std::erase_if(at.waiting, [&](const Place& place) { return place.expires <= now; });
  const auto mine = std::find_if(at.waiting.begin(), at.waiting.end(),
                                 [&](const Place& place) { return place.id == request.owner.id; });
  const bool waits = mine != at.waiting.end();
  if (waits) mine->expires = now + request.lease;
  if (!at.record.empty() && !is_beside) {
    if (!waits && !another_gate(request.gate.get())) wait(at, request, now);
    return {ClaimStatus::sealed, 0, at.record};
  }
  if (holds(at, request.owner.id, now)) {
    at.expires = now + request.lease;
    return {ClaimStatus::granted, at.token, {}};
  }
  const bool is_next =
      !holds(at, at.owner.id, now) && (at.waiting.empty() || mine == at.waiting.begin());
  if (waits && !is_next) return {ClaimStatus::waiting, 0, {}};
  if (!waits) {
    if (auto other = another_gate(request.gate.get())) {
      return {ClaimStatus::gate_changed, 0, std::move(*other)};
    }
    if (!is_next) return wait(at, request, now);
    const bool may_hold = request.gate == nullptr || request.gate->seal.empty();
    if (!may_hold && ways_.seals_at_once && !is_beside) return seal_at_once(at, request, now);
  }
  leave(at, request.owner.id);
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
  leave(at, request.owner.id);
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
  status.sealed = !at.record.empty();
  for (const auto& place : at.waiting) {
    if (now < place.expires) status.waiting.push_back(place.owner);
  }
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
    if (!name.starts_with(prefix)) continue;
    auto status = inspect(name, now);
    const bool waited_for = !status.waiting.empty() && !is_planted("gate_waiters_not_listed");
    const bool is_there = status.held || status.sealed || waited_for;
    if (is_there) all.push_back(std::move(status));
  }
  return all;
}

std::vector<std::string> Server::claimed_names(const std::string& prefix, TimePoint now) const {
  std::vector<std::string> names;
  for (const auto& status : list(prefix, now)) {
    if (!status.sealed) names.push_back(status.name);
  }
  return names;
}

std::uint64_t Server::highest_token() const {
  auto highest = first_token_;
  for (const auto& [name, lock] : locks_) highest = std::max(highest, lock.last_token);
  return highest;
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
                    is_planted("move_seal_without_compare");
  if (!at.record.empty() || !ours) return {false, this->record(request.name)};
  if (auto other = another_gate(request.gate.get());
      other && !is_planted("gate_sealed_whatever_it_is")) {
    return {false, std::nullopt, std::move(other)};
  }
  at.owner = {};
  write(at, record, now);
  return {true, std::nullopt};
}

Server::Exchange Server::set_record(const std::string& name, const std::string& from,
                                    const std::optional<std::string>& to, std::uint64_t min_token,
                                    TimePoint now, const GateCheck* gate) {
  auto& at = lock(name);
  if (at.record != from || from.empty()) return {false, record(name)};
  if (auto other = another_gate(gate); other && !is_planted("gate_opened_whatever_it_is")) {
    return {false, std::nullopt, std::move(other)};
  }
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
