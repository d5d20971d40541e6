// SPDX-License-Identifier: Apache-2.0
//
// The holders of permits and the waiters for them, and a change of the limit.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/metadata.hpp"
#include "backends/zookeeper/rules/permits.hpp"

namespace dlock::zookeeper {
namespace {

using std::chrono::milliseconds;

/// Returns the owner of a lease or of a place in line. Another client's node counts as one permit.
PermitHolder holder_of(const std::string& node, const std::optional<Metadata>& metadata) {
  PermitHolder holder;
  if (metadata) {
    holder.owner = metadata->owner;
    holder.permits = std::max<std::uint32_t>(metadata->permits, 1);
    holder.remaining = metadata->session_timeout;
    holder.broken = metadata->broken;
    if (holder.broken) holder.remaining.reset();
  } else {
    holder.owner.id = node;
  }
  return holder;
}

/// Clear if the text is empty.
Failure refusal(std::string newer) {
  return newer.empty() ? Failure{} : Failure{Error::newer_format, std::move(newer)};
}

}  // namespace

asio::awaitable<Result<SemaphoreStatus>> ZooKeeperBackend::inspect_semaphore(std::string name,
                                                                             TimePoint deadline) {
  Result<SemaphoreStatus> result;
  const auto path = names_.path(name) + "/";
  while (!closed_) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    SemaphoreStatus status;
    status.name = name;
    auto sync = session_->client().sync(names_.root());
    const auto synced = co_await reply_until(std::move(sync), deadline);
    if (is_loss(synced.rc) || !session_->connected()) continue;
    auto get = session_->client().get(path + std::string(kLimitNode));
    const auto limit = co_await reply_until(std::move(get), deadline);
    if (limit.rc == ZOK) status.limit = read_limit(limit.text);
    auto refused = limit.rc == ZOK
                       ? refusal(newer_limit(path + std::string(kLimitNode), limit.text))
                       : Failure{};
    if (limit.rc == ZOK || limit.rc == ZNONODE) {
      const auto leases = path + std::string(kLeasesNode);
      const auto guard = path + std::string(kGuardNode);
      int rc = co_await describe_leases(leases, status, refused, deadline);
      if (rc == ZOK) rc = co_await describe_line(guard, status, refused, deadline);
      if (refused.error) {
        result.failure = std::move(refused);
        co_return result;
      }
      if (rc == ZOK) result.value = std::move(status);
      if (!is_loss(rc)) {
        result.failure = failure_of(rc, "listing " + path);
        co_return result;
      }
    } else if (!is_loss(limit.rc)) {
      result.failure = failure_of(limit.rc, "reading " + path + std::string(kLimitNode));
      co_return result;
    }
    if (env_.now() >= deadline) break;
  }
  result.failure = unreached();
  co_return result;
}

Failure ZooKeeperBackend::unreached() const {
  return {session_->connected() ? Error::no_answer : Error::not_connected,
          "servers " + session_->addresses()};
}

asio::awaitable<int> ZooKeeperBackend::describe_leases(std::string directory,
                                                       SemaphoreStatus& status, Failure& refused,
                                                       TimePoint deadline) {
  if (!session_->connected()) co_return ZCONNECTIONLOSS;
  auto list = session_->client().children(directory);
  const auto listing = co_await reply_until(std::move(list), deadline);
  if (listing.rc == ZNONODE) co_return ZOK;
  if (listing.rc != ZOK) co_return listing.rc;
  const auto offset = co_await token_offset_.value(deadline);
  if (is_loss(offset.rc)) co_return offset.rc;
  if (offset.rc == ZBADARGUMENTS) refused = token_offset_.unreadable();
  struct Leases {
    PermitHolder holder;
    std::uint32_t count = 0;
  };
  std::map<std::string, Leases> all;  // by their owners
  for (const auto& child : listing.children) {
    if (!session_->connected()) co_return ZCONNECTIONLOSS;
    auto get = session_->client().get(directory + "/" + child);
    const auto reply = co_await reply_until(std::move(get), deadline);
    if (reply.rc == ZNONODE) continue;
    if (is_loss(reply.rc)) co_return reply.rc;
    if (!refused.error) refused = refusal(newer_metadata(directory + "/" + child, reply.text));
    const auto metadata = read_metadata(reply.text);
    auto& leases = all[metadata ? metadata->owner.id : child];
    const auto token = static_cast<std::uint64_t>(reply.stat.czxid) + offset.offset;
    const bool is_first = leases.count == 0 || token < leases.holder.token.value_or(0);
    if (is_first && reply.rc == ZOK) {
      leases.holder = holder_of(child, metadata);
      leases.holder.token = token;
      leases.holder.held_for =
          std::max(milliseconds(0), milliseconds(env_.wall_clock_ms() - reply.stat.ctime_ms));
    }
    ++leases.count;
  }
  for (auto& [id, leases] : all) {
    leases.holder.permits = leases.count;
    status.holders.push_back(std::move(leases.holder));
  }
  std::sort(status.holders.begin(), status.holders.end(),
            [](const PermitHolder& a, const PermitHolder& b) { return a.token < b.token; });
  co_return ZOK;
}

asio::awaitable<int> ZooKeeperBackend::describe_line(std::string directory, SemaphoreStatus& status,
                                                     Failure& refused, TimePoint deadline) {
  if (!session_->connected()) co_return ZCONNECTIONLOSS;
  auto list = session_->client().children(directory);
  const auto listing = co_await reply_until(std::move(list), deadline);
  if (listing.rc == ZNONODE) co_return ZOK;
  if (listing.rc != ZOK) co_return listing.rc;
  for (const auto& one : in_line(listing.children, {})) {
    if (!session_->connected()) co_return ZCONNECTIONLOSS;
    auto get = session_->client().get(directory + "/" + one.name);
    const auto reply = co_await reply_until(std::move(get), deadline);
    if (reply.rc == ZNONODE) continue;
    if (is_loss(reply.rc)) co_return reply.rc;
    if (!refused.error) refused = refusal(newer_metadata(directory + "/" + one.name, reply.text));
    auto waiter = holder_of(one.name, read_metadata(reply.text));
    waiter.remaining.reset();
    const bool has_them =
        std::any_of(status.holders.begin(), status.holders.end(),
                    [&](const PermitHolder& held) { return held.owner.id == waiter.owner.id; });
    if (!has_them) status.waiting.push_back(std::move(waiter));
  }
  co_return ZOK;
}

asio::awaitable<Result<std::vector<SemaphoreStatus>>> ZooKeeperBackend::list_semaphores(
    std::string prefix, TimePoint deadline) {
  Result<std::vector<SemaphoreStatus>> result;
  auto all = co_await walk(std::move(prefix), deadline);
  if (all.rc != ZOK) {
    result.failure = unreached();
    co_return result;
  }
  std::sort(all.semaphores.begin(), all.semaphores.end());
  std::vector<SemaphoreStatus> found;
  for (const auto& name : all.semaphores) {
    auto status = co_await inspect_semaphore(name, deadline);
    const auto error = portable(status.failure.error);
    if (!status.value && (error == errc::access_denied || error == errc::newer_format)) {
      if (!all.left_out.error) all.left_out = std::move(status.failure);
      continue;
    }
    if (!status.value) {
      result.failure = std::move(status.failure);
      co_return result;
    }
    found.push_back(std::move(*status.value));
  }
  result.failure = std::move(all.left_out);
  result.value = std::move(found);
  co_return result;
}

// The holder's first lease is the last one. While it exists, the others may be left from a break
// whose answer was lost, and are found through it.
asio::awaitable<ZooKeeperBackend::LeasesFound> ZooKeeperBackend::leases_with(std::uint64_t token,
                                                                             std::string directory,
                                                                             TimePoint deadline) {
  LeasesFound leases;
  const auto listing = co_await fresh_children(directory, false, deadline);
  const auto offset = co_await token_offset_.value(deadline);
  if (is_loss(listing.rc) || is_loss(offset.rc) || !session_->connected()) co_return leases;
  std::vector<std::pair<std::string, PendingReply>> pending;
  for (const auto& child : listing.children) {
    pending.emplace_back(child, session_->client().exists(directory + "/" + child));
  }
  leases.rc = ZOK;
  leases.any = !pending.empty();
  std::map<std::string, std::pair<std::uint64_t, std::string>> firsts;  // by their owners
  for (const auto& [child, one] : pending) {
    const auto reply = co_await reply_until(one, deadline);
    if (is_loss(reply.rc)) leases.rc = reply.rc;
    if (reply.rc != ZOK) continue;
    const auto owner = lease_owner(child);
    const auto born = static_cast<std::uint64_t>(reply.stat.czxid);
    auto& first = firsts[owner.empty() ? child : std::string(owner)];
    if (first.second.empty() || born < first.first) first = {born, child};
  }
  const auto& offsets = token_offset_.all();  // the one that was in force at the grant
  for (const auto& [owner, first] : firsts) {
    const auto born = first.first;
    const bool same = std::any_of(offsets.begin(), offsets.end(),
                                  [&](std::uint64_t value) { return born + value == token; });
    if (!same) continue;
    leases.nodes = copies_of(owner, listing.children);
    std::erase(leases.nodes, first.second);
    leases.nodes.push_back(first.second);
  }
  co_return leases;
}

asio::awaitable<EvictAnswer> ZooKeeperBackend::evict_permits(EvictRequest request,
                                                             TimePoint deadline) {
  const auto directory = names_.path(request.name) + "/" + std::string(kLeasesNode);
  EvictAnswer answer;
  auto& failure = answer.failure;
  bool asked = false;  // a deletion was sent and its answer lost
  while (!closed_ && env_.now() < deadline) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    const auto found = co_await leases_with(request.token, directory, deadline);
    if (found.rc != ZOK || !session_->connected()) continue;
    answer.is_free = found.nodes.empty() && asked;
    if (answer.is_free) co_return answer;
    if (found.nodes.empty()) {
      forget_marks(directory);
      failure = {found.any ? Error::held_with_other_token : Error::not_held, request.name};
      co_return answer;
    }
    auto marking = Marking::done;
    for (const auto& node : found.nodes) {
      if (request.at_once || marking == Marking::again || failure.error) break;
      marking = co_await mark_node(directory + "/" + node, request.mark, answer, deadline);
    }
    if (failure.error) co_return answer;
    if (marking == Marking::again || !session_->connected()) continue;
    if (!request.at_once && answer.within != milliseconds(0)) co_return answer;
    if (request.at_once) answer.within = std::chrono::ceil<milliseconds>(session_->timeout());
    std::vector<PendingReply> pending;
    for (const auto& node : found.nodes) {
      pending.push_back(
          session_->client().mark_and_remove(directory + "/" + node, kBrokenByOperator));
    }
    asked = true;
    int rc = ZOK;
    for (auto& one : pending) {
      const auto reply = co_await reply_until(std::move(one), deadline);
      if (reply.rc != ZOK && reply.rc != ZNONODE && !is_loss(rc)) rc = reply.rc;
    }
    if (!is_loss(rc)) forget_marks(directory);
    answer.is_free = rc == ZOK;
    if (rc == ZOK) co_return answer;
    if (!is_loss(rc)) {
      failure = failure_of(rc, "deleting nodes below " + directory);
      co_return answer;
    }
  }
  failure = unreached();
  co_return answer;
}

asio::awaitable<Failure> ZooKeeperBackend::set_limit(std::string name, std::uint32_t limit,
                                                     TimePoint deadline) {
  const auto path = names_.path(name) + "/" + std::string(kLimitNode);
  const auto text = write_limit(limit);
  while (!closed_) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    auto set = session_->client().set(path, text);
    auto rc = (co_await reply_until(std::move(set), deadline)).rc;
    if (rc == ZOK) co_return Failure{};
    if (rc == ZNONODE) {
      auto nodes = names_.nodes(name);
      for (const auto& node : nodes) {
        if (!session_->connected()) break;
        auto made = session_->client().create(node, {}, Client::Mode::container);
        co_await reply_until(std::move(made), deadline);
      }
      if (!session_->connected()) continue;
      auto made = session_->client().create(path, text, Client::Mode::persistent);
      rc = (co_await reply_until(std::move(made), deadline)).rc;
      if (rc == ZOK) co_return Failure{};
      if (rc == ZNODEEXISTS || rc == ZNONODE) rc = ZCONNECTIONLOSS;  // once more
    }
    if (!is_loss(rc)) co_return failure_of(rc, "writing " + path);
    if (env_.now() >= deadline) break;
  }
  co_return unreached();
}

}  // namespace dlock::zookeeper
