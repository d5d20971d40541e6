// SPDX-License-Identifier: Apache-2.0
#include "backends/memory/store.hpp"

#include <algorithm>
#include <utility>

namespace dlock::memory {
namespace {

auto find_owner(auto& entries, const std::string& owner_id) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.owner.id == owner_id; });
}

}  // namespace

std::shared_ptr<SharedStore> SharedStore::get(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<SharedStore>> stores;
  const std::lock_guard lock(mutex);
  auto& known = stores[name];
  auto store = known.lock();
  if (!store) known = store = std::make_shared<SharedStore>();
  return store;
}

std::size_t SharedStore::holders(const Entries& entries) {
  std::size_t count = 0;
  while (count < entries.size() && entries[count].mode == Mode::shared) ++count;
  return count == 0 ? std::min<std::size_t>(entries.size(), 1) : count;
}

bool SharedStore::may_hold(const Entries& entries, Entries::const_iterator entry) {
  return static_cast<std::size_t>(entry - entries.begin()) < holders(entries);
}

SharedStore::Grant SharedStore::claim(const ClaimRequest& request, TimePoint now, Wake wake) {
  Wake contended;
  Grant grant;
  {
    const std::lock_guard guard(mutex_);
    grant = claim_locked(request, now, std::move(wake));
    auto& entries = queues_[request.name].entries;
    const bool asks_another = !entries.empty() && entries.front().owner.id != request.owner.id;
    if (asks_another) contended = std::exchange(entries.front().contended, nullptr);
  }
  if (contended) contended();
  tell_watchers(request.name);
  return grant;
}

void SharedStore::tell_asked(const std::string& lock, const std::string& owner_id, Told asked) {
  const std::lock_guard guard(mutex_);
  auto& entries = queues_[lock].entries;
  const auto mine = find_owner(entries, owner_id);
  if (mine != entries.end()) mine->asked = std::move(asked);
}

SharedStore::Asked SharedStore::ask(const std::string& lock, std::uint64_t token,
                                    const Revocation& how) {
  Asked answer;
  Told asked;
  {
    const std::lock_guard guard(mutex_);
    const auto& queue = queues_[lock];
    const auto& entries = queue.entries;
    if (entries.empty() || !queue.record.empty()) return answer;
    auto holder = entries.begin();
    if (token != 0) {
      holder = std::find_if(entries.begin(), entries.end(),
                            [token](const Entry& entry) { return entry.token == token; });
    }
    answer.is_another = holder == entries.end();
    answer.token = answer.is_another ? entries.front().token : holder->token;
    if (answer.is_another) return answer;
    asked = holder->asked;
  }
  answer.heard = static_cast<bool>(asked);
  if (asked) asked(how);
  return answer;
}

bool SharedStore::tell_contention(const std::string& lock, const std::string& owner_id,
                                  Wake contended) {
  const std::lock_guard guard(mutex_);
  auto& entries = queues_[lock].entries;
  const auto mine = find_owner(entries, owner_id);
  if (mine == entries.end()) return true;
  if (entries.size() > 1) return false;
  mine->contended = std::move(contended);
  return true;
}

SharedStore::Grant SharedStore::claim_locked(const ClaimRequest& request, TimePoint now,
                                             Wake wake) {
  auto& waiting = queues_[request.name];
  auto& entries = waiting.entries;
  const auto* const gate = request.gate.get();
  auto mine = find_owner(entries, request.owner.id);
  const bool enters = mine == entries.end();
  const auto enter = [&] {
    const auto arrival = now - request.head_start;
    auto place = entries.end();
    while (request.head_start.count() > 0 && place != entries.begin() &&
           std::prev(place)->token == 0 && std::prev(place)->arrival > arrival) {
      --place;
    }
    mine = entries.insert(place, Entry{request.owner, request.mode, 0, now, std::move(wake)});
    mine->arrival = arrival;
  };
  if (!waiting.record.empty()) {
    const bool stays = enters && request.queue && !another_gate(gate);
    if (stays) enter();
    return {false, 0, waiting.record};
  }
  if (enters) {
    if (auto other = another_gate(gate)) return {false, 0, {}, std::move(other)};
    const bool seals = gate != nullptr && !gate->seal.empty() && entries.empty();
    if (seals) return seal_at_once(waiting, request.min_token, gate->seal);
    enter();
    if (!request.queue && !may_hold(entries, mine)) {
      entries.erase(mine);
      return {};
    }
  }
  if (!may_hold(entries, mine)) {
    Grant waits;
    const auto before = static_cast<std::size_t>(mine - entries.begin());
    waits.waiting_before = before - holders(entries);
    return waits;
  }
  if (mine->token == 0) {
    waiting.last_token = std::max(waiting.last_token, request.min_token) + 1;
    mine->token = waiting.last_token;
    mine->since = now;
  }
  return {true, mine->token, {}};
}

SharedStore::Grant SharedStore::claim(const std::string& lock, const Owner& owner, bool queue,
                                      std::uint64_t min_token, TimePoint now, Wake wake) {
  ClaimRequest request;
  request.name = lock;
  request.owner = owner;
  request.queue = queue;
  request.min_token = min_token;
  return claim(request, now, std::move(wake));
}

bool SharedStore::holds(const std::string& lock, const std::string& owner_id) const {
  const std::lock_guard guard(mutex_);
  const auto queue = queues_.find(lock);
  if (queue == queues_.end() || !queue->second.record.empty()) return false;
  const auto& entries = queue->second.entries;
  const auto mine = find_owner(entries, owner_id);
  return mine != entries.end() && may_hold(entries, mine);
}

bool SharedStore::downgrade(const std::string& lock, const std::string& owner_id) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& queue = queues_[lock];
    const auto mine = find_owner(queue.entries, owner_id);
    const bool ours = queue.record.empty() && mine != queue.entries.end() && mine->token != 0;
    if (!ours || mine->broken) return false;
    mine->mode = Mode::shared;
    wake_holders(queue.entries, wakes);
  }
  for (const auto& wake : wakes) wake();
  return true;
}

/// Wakes the waiters that may hold the lock now and were not notified yet.
void SharedStore::wake_holders(const Entries& entries, std::vector<Wake>& wakes) {
  const auto count = static_cast<Entries::difference_type>(holders(entries));
  std::for_each(entries.begin(), entries.begin() + count, [&](const Entry& entry) {
    if (entry.token == 0) wakes.push_back(entry.wake);
  });
}

void SharedStore::remove(Queue& queue, Entries::iterator entry, std::vector<Wake>& wakes) {
  wakes.push_back(std::move(entry->wake));
  queue.entries.erase(entry);
  wake_holders(queue.entries, wakes);
}

bool SharedStore::release(const std::string& lock, const std::string& owner_id) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& queue = queues_[lock];
    const auto mine = find_owner(queue.entries, owner_id);
    if (mine == queue.entries.end()) return false;
    remove(queue, mine, wakes);
    wakes.erase(wakes.begin());  // the released owner needs no wake
  }
  for (const auto& wake : wakes) wake();
  tell_watchers(lock);
  return true;
}

std::optional<Break> SharedStore::mark_of(const std::string& lock,
                                          const std::string& owner_id) const {
  const std::lock_guard guard(mutex_);
  const auto queue = queues_.find(lock);
  if (queue == queues_.end()) return std::nullopt;
  const auto mine = find_owner(queue->second.entries, owner_id);
  return mine == queue->second.entries.end() ? std::nullopt : mine->broken;
}

std::optional<std::uint64_t> SharedStore::evict(const std::string& lock, std::uint64_t token,
                                                const Break* mark) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& queue = queues_[lock];
    auto& entries = queue.entries;
    if (entries.empty() || !queue.record.empty()) return 0;
    const auto holder = std::find_if(entries.begin(), entries.end(), [token](const Entry& entry) {
      return entry.token != 0 && entry.token == token;
    });
    if (holder == entries.end()) return entries.front().token;
    if (mark == nullptr) {
      remove(queue, holder, wakes);
    } else if (!holder->broken) {
      holder->broken = *mark;
      holder->proof.clear();
      wakes.push_back(holder->wake);
    }
  }
  for (const auto& wake : wakes) wake();
  tell_watchers(lock);
  return std::nullopt;
}

void SharedStore::evict(const std::string& lock) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& queue = queues_[lock];
    if (!queue.entries.empty()) remove(queue, queue.entries.begin(), wakes);
  }
  for (const auto& wake : wakes) wake();
  tell_watchers(lock);
}

std::string SharedStore::holder_id(const std::string& lock) const {
  const auto queue = queues_.find(lock);
  if (queue == queues_.end() || !queue->second.record.empty()) return {};
  const auto& entries = queue->second.entries;
  return entries.empty() || entries.front().token == 0 ? std::string() : entries.front().owner.id;
}

void SharedStore::watch(const std::string& lock, const void* watcher, Wake changed) {
  const std::lock_guard guard(mutex_);
  auto& watched = watched_[lock];
  watched.holder = holder_id(lock);
  watched.watchers[watcher] = std::move(changed);
}

void SharedStore::unwatch(const std::string& lock, const void* watcher) noexcept {
  const std::lock_guard guard(mutex_);
  const auto watched = watched_.find(lock);
  if (watched == watched_.end()) return;
  watched->second.watchers.erase(watcher);
  if (watched->second.watchers.empty()) watched_.erase(watched);
}

void SharedStore::tell_watchers(const std::string& lock) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    const auto watched = watched_.find(lock);
    if (watched == watched_.end()) return;
    auto holder = holder_id(lock);
    if (holder == watched->second.holder) return;
    watched->second.holder = std::move(holder);
    for (const auto& [watcher, changed] : watched->second.watchers) wakes.push_back(changed);
  }
  for (const auto& wake : wakes) wake();
}

std::optional<std::uint64_t> SharedStore::holder_token(const std::string& lock) const {
  const std::lock_guard guard(mutex_);
  const auto queue = queues_.find(lock);
  if (queue == queues_.end() || queue->second.entries.empty()) return std::nullopt;
  if (!queue->second.record.empty()) return std::nullopt;
  return queue->second.entries.front().token;
}

LockStatus SharedStore::inspect(const std::string& lock, TimePoint now) const {
  const std::lock_guard guard(mutex_);
  LockStatus status;
  status.name = lock;
  const auto queue = queues_.find(lock);
  if (queue == queues_.end()) return status;
  const auto& entries = queue->second.entries;
  status.sealed = !queue->second.record.empty();
  if (status.sealed)
    status.notes.emplace_back("sealed by a migration: no client can acquire it here");
  const auto count = status.sealed ? 0 : holders(entries);
  for (std::size_t i = count; i < entries.size(); ++i) status.waiting.push_back(entries[i].owner);
  if (count == 0) return status;
  status.held = true;
  status.mode = entries.front().mode;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& entry = entries[i];
    SharedHolder holder;
    holder.owner = entry.owner;
    if (entry.token != 0) holder.token = entry.token;
    holder.held_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - entry.since);
    holder.broken = entry.broken;
    status.readers.push_back(std::move(holder));
  }
  const auto& first = status.readers.front();
  status.owner = first.owner;
  status.token = first.token;
  status.held_for = first.held_for;
  status.broken = first.broken;
  if (status.mode == Mode::exclusive) status.readers.clear();
  return status;
}

std::vector<std::string> SharedStore::held_names() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, queue] : queues_) {
    if (!queue.entries.empty() || !queue.record.empty()) names.push_back(name);
  }
  return names;
}

std::string SharedStore::record(const std::string& lock) const {
  const std::lock_guard guard(mutex_);
  const auto queue = queues_.find(lock);
  return queue == queues_.end() ? std::string() : queue->second.record;
}

SharedStore::Exchange SharedStore::seal(const std::string& lock, const std::string& owner_id,
                                        std::string record, const GateCheck* gate) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& queue = queues_[lock];
    auto& entries = queue.entries;
    const bool ours = queue.record.empty() && !entries.empty() &&
                      entries.front().owner.id == owner_id && entries.front().token != 0;
    if (!ours) return {false, queue.record};
    if (auto other = another_gate(gate)) return {false, {}, std::move(other)};
    entries.pop_front();
    queue.record = std::move(record);
    for (const auto& entry : entries) wakes.push_back(entry.wake);
  }
  for (const auto& wake : wakes) wake();
  tell_watchers(lock);
  return {true, {}};
}

SharedStore::Exchange SharedStore::set_record(const std::string& lock, const std::string& from,
                                              std::string to, std::uint64_t min_token,
                                              const GateCheck* gate) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& queue = queues_[lock];
    if (queue.record != from || from.empty()) return {false, queue.record};
    if (auto other = another_gate(gate)) return {false, {}, std::move(other)};
    queue.record = std::move(to);
    if (queue.record.empty()) queue.last_token = std::max(queue.last_token, min_token);
    for (const auto& entry : queue.entries) wakes.push_back(entry.wake);
  }
  for (const auto& wake : wakes) wake();
  return {true, {}};
}

bool SharedStore::raise(const std::string& lock, const std::string& owner_id,
                        std::uint64_t min_token) {
  const std::lock_guard guard(mutex_);
  auto& queue = queues_[lock];
  const bool ours =
      queue.record.empty() && !queue.entries.empty() && queue.entries.front().owner.id == owner_id;
  if (ours) queue.last_token = std::max(queue.last_token, min_token);
  return ours;
}

std::optional<std::string> SharedStore::another_gate(const GateCheck* expected) const {
  if (expected == nullptr) return {};
  const auto found = notes_.find(expected->key);
  auto text = found == notes_.end() ? std::string() : found->second;
  if (text == expected->text) return {};
  return text;
}

SharedStore::Grant SharedStore::seal_at_once(Queue& queue, std::uint64_t min_token,
                                             std::string record) {
  queue.last_token = std::max(queue.last_token, min_token) + 1;
  const auto token = std::to_string(queue.last_token);
  queue.record = std::move(record);
  for (auto at = queue.record.find(kTokenPlace); at != std::string::npos;
       at = queue.record.find(kTokenPlace, at + token.size())) {
    queue.record.replace(at, kTokenPlace.size(), token);
  }
  return {false, 0, queue.record};
}

std::vector<std::string> SharedStore::claimed_names() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, queue] : queues_) {
    if (!queue.entries.empty() && queue.record.empty()) names.push_back(name);
  }
  return names;
}

std::uint64_t SharedStore::highest_token() const {
  const std::lock_guard guard(mutex_);
  std::uint64_t highest = 0;
  for (const auto& [name, queue] : queues_) highest = std::max(highest, queue.last_token);
  return highest;
}

std::string SharedStore::note(const std::string& key) const {
  const std::lock_guard guard(mutex_);
  const auto found = notes_.find(key);
  return found == notes_.end() ? std::string() : found->second;
}

SharedStore::Exchange SharedStore::set_note(const std::string& key, const std::string& from,
                                            std::string to) {
  const std::lock_guard guard(mutex_);
  auto& text = notes_[key];
  if (text != from) return {false, text};
  text = std::move(to);
  return {true, {}};
}

}  // namespace dlock::memory
