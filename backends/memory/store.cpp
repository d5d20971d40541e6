// SPDX-License-Identifier: Apache-2.0
#include "backends/memory/store.hpp"

#include <algorithm>

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

SharedStore::Grant SharedStore::claim(const std::string& lock, const Owner& owner, bool queue,
                                      std::uint64_t min_token, TimePoint now, Wake wake) {
  const std::lock_guard guard(mutex_);
  auto& waiting = queues_[lock];
  auto& entries = waiting.entries;
  auto mine = find_owner(entries, owner.id);
  if (mine == entries.end()) {
    if (!queue && !entries.empty()) return {};
    entries.push_back(Entry{owner, 0, now, std::move(wake)});
    mine = std::prev(entries.end());
  }
  if (mine != entries.begin()) return {};
  if (mine->token == 0) {
    waiting.last_token = std::max(waiting.last_token, min_token) + 1;
    mine->token = waiting.last_token;
    mine->since = now;
  }
  return {true, mine->token};
}

bool SharedStore::holds(const std::string& lock, const std::string& owner_id) const {
  const std::lock_guard guard(mutex_);
  const auto queue = queues_.find(lock);
  return queue != queues_.end() && !queue->second.entries.empty() &&
         queue->second.entries.front().owner.id == owner_id;
}

void SharedStore::remove(Queue& queue, std::deque<Entry>::iterator entry,
                         std::vector<Wake>& wakes) {
  const bool was_first = entry == queue.entries.begin();
  wakes.push_back(std::move(entry->wake));
  queue.entries.erase(entry);
  if (was_first && !queue.entries.empty()) wakes.push_back(queue.entries.front().wake);
}

bool SharedStore::release(const std::string& lock, const std::string& owner_id) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& queue = queues_[lock];
    const auto mine = find_owner(queue.entries, owner_id);
    if (mine == queue.entries.end()) return false;
    remove(queue, mine, wakes);
    wakes.erase(wakes.begin());  // who leaves knows it
  }
  for (const auto& wake : wakes) wake();
  return true;
}

void SharedStore::evict(const std::string& lock) {
  std::vector<Wake> wakes;
  {
    const std::lock_guard guard(mutex_);
    auto& queue = queues_[lock];
    if (!queue.entries.empty()) remove(queue, queue.entries.begin(), wakes);
  }
  for (const auto& wake : wakes) wake();
}

std::optional<std::uint64_t> SharedStore::holder_token(const std::string& lock) const {
  const std::lock_guard guard(mutex_);
  const auto queue = queues_.find(lock);
  if (queue == queues_.end() || queue->second.entries.empty()) return std::nullopt;
  return queue->second.entries.front().token;
}

LockStatus SharedStore::inspect(const std::string& lock, TimePoint now) const {
  const std::lock_guard guard(mutex_);
  LockStatus status;
  status.name = lock;
  const auto queue = queues_.find(lock);
  if (queue == queues_.end()) return status;
  for (const auto& entry : queue->second.entries) {
    if (&entry != &queue->second.entries.front()) {
      status.waiting.push_back(entry.owner);
      continue;
    }
    status.held = true;
    status.owner = entry.owner;
    if (entry.token != 0) status.token = entry.token;
    status.held_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - entry.since);
  }
  return status;
}

std::vector<std::string> SharedStore::held_names() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, queue] : queues_) {
    if (!queue.entries.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace dlock::memory
