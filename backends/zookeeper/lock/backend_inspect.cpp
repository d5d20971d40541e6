// SPDX-License-Identifier: Apache-2.0
//
// The holder and the waiters of a lock, and the operator's break.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/metadata.hpp"
#include "backends/zookeeper/rules/permits.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::zookeeper {
namespace {

using std::chrono::milliseconds;

/// A longer queue is counted, not named.
constexpr std::size_t kMostWaiters = 1000;
/// The limit for nodes with data of other programs, which can have up to a server's limit of 1 MiB
/// each.
constexpr std::size_t kDataAtOnce = 32;

Failure no_answer(const Session& session) {
  return {session.connected() ? Error::no_answer : Error::not_connected,
          "servers " + session.addresses()};
}

Owner owner_of(const Contender& contender, const std::optional<Metadata>& metadata) {
  if (metadata) return metadata->owner;
  Owner owner;
  owner.id = contender.name;
  return owner;
}

/// Clear unless a newer dlock wrote the node's data.
Failure newer_node(std::string_view node, std::string_view data) {
  auto newer = newer_metadata(node, data);
  return newer.empty() ? Failure{} : Failure{Error::newer_format, std::move(newer)};
}

/// Returns whether another try finds the same.
bool is_refusal(const Failure& failure) {
  return failure.error == make_error_code(Error::newer_format) ||
         failure.error == make_error_code(Error::damaged_offset);
}

/// Returns the number of holders at the front: the first node, and the readers with it.
std::size_t holders_of(const std::vector<Contender>& line) {
  const auto alone = std::find_if(line.begin(), line.end(),
                                  [](const Contender& one) { return !is_shared(one.kind); });
  const auto readers = static_cast<std::size_t>(alone - line.begin());
  return std::min(line.size(), std::max<std::size_t>(readers, 1));
}

std::string_view note_on(const Contender& contender) {
  switch (contender.kind) {
    case Contender::Kind::seal:
      return "sealed by a migration: no client can acquire it here";
    case Contender::Kind::move:
      return "a migration is at work";
    case Contender::Kind::read:
      return "first in line is a reader of Curator's read-write lock";
    case Contender::Kind::reader:
      return "first in line is another program's reader";
    case Contender::Kind::write:
      return "first in line is a writer of Curator's read-write lock";
    case Contender::Kind::mutex:
    case Contender::Kind::foreign:
      break;
  }
  return "first in line is another program's node, without our metadata";
}

/// Returns whether the node may be a reader's that replaced a writer's. It has the writer's number
/// and counts as old as that. Its own birth must not count. Otherwise nodes past the counter's end
/// would be older than number two, and first in the queue (found by the simulation).
bool may_have_stepped_down(const std::string& node) {
  const auto contender = parse_contender(node);
  return contender && contender->kind == Contender::Kind::read && !needs_birth(*contender);
}

}  // namespace

// A listing must be at least as new as the state that other clients have already seen.
asio::awaitable<Reply> ZooKeeperBackend::fresh_children(std::string path, bool settled,
                                                        TimePoint deadline) {
  Reply reply;
  reply.rc = ZCONNECTIONLOSS;
  if (!session_->connected()) co_return reply;
  auto& client = session_->client();
  auto before = settled ? client.prove(names_.root()) : client.sync(path);
  auto list = client.children(path);
  const auto answer = co_await reply_until(std::move(before), deadline);
  reply = co_await reply_until(std::move(list), deadline);
  if (is_loss(answer.rc)) reply.rc = answer.rc;
  co_return reply;
}

// To see a node needs no permission, to read it does.
asio::awaitable<Result<Births>> ZooKeeperBackend::births_of(std::string path,
                                                            std::vector<std::string> nodes,
                                                            TimePoint deadline) {
  struct Asked {
    std::string node;
    PendingReply seen;
    std::optional<PendingReply> read{};
  };
  std::vector<Asked> asked;
  Result<Births> result;
  if (!session_->connected()) co_return result;
  {
    auto& client = session_->client();
    const Client::Burst burst(client);
    for (auto& node : nodes) {
      const auto full = fmt::format("{}/{}", path, node);
      const bool read = may_have_stepped_down(node);
      asked.push_back({std::move(node), client.exists(full)});
      if (read) asked.back().read = client.get(full);
    }
  }
  Births births;
  bool lost = false;
  for (auto& one : asked) {
    const auto seen = co_await reply_until(std::move(one.seen), deadline);
    Reply read;
    read.rc = ZNOAUTH;
    if (one.read) read = co_await reply_until(std::move(*one.read), deadline);
    lost = lost || is_loss(seen.rc) || is_loss(read.rc);
    if (seen.rc != ZOK) continue;
    if (read.rc == ZOK && !result.failure.error) {
      result.failure = newer_node(path + "/" + one.node, read.text);
    }
    const auto metadata = read.rc == ZOK ? read_metadata(read.text) : std::nullopt;
    births[one.node] = born_of(metadata, seen.stat.czxid);
  }
  if (!lost && !result.failure.error) result.value = std::move(births);
  co_return result;
}

asio::awaitable<Result<LockStatus>> ZooKeeperBackend::inspect(std::string name,
                                                              TimePoint deadline) {
  Result<LockStatus> result;
  while (!closed_) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    auto listing = co_await fresh_children(names_.path(name), false, deadline);
    if (listing.rc == ZNONODE) listing = Reply{ZOK, {}, {}, {}};
    if (!is_loss(listing.rc) && listing.rc != ZOK) {
      result.failure = failure_of(listing.rc, "listing " + names_.path(name));
      co_return result;
    }
    if (listing.rc == ZOK) {
      result = co_await describe(name, std::move(listing.children), deadline);
      if (result.value || is_refusal(result.failure)) co_return result;
    }
    if (env_.now() >= deadline) break;
  }
  result.failure = no_answer(*session_);
  co_return result;
}

asio::awaitable<Result<LockStatus>> ZooKeeperBackend::describe(std::string name,
                                                               std::vector<std::string> children,
                                                               TimePoint deadline) {
  Result<LockStatus> result;
  result.failure = no_answer(*session_);
  const auto path = names_.path(name);
  auto births = co_await births_of(path, births_to_ask(in_line(children), {}), deadline);
  if (births.failure.error) {
    result.failure = std::move(births.failure);
    co_return result;
  }
  if (!births.value || !session_->connected()) co_return result;
  const auto offset = co_await token_offset_.value(deadline);
  if (is_loss(offset.rc) || !session_->connected()) co_return result;
  if (offset.rc == ZBADARGUMENTS) {
    result.failure = token_offset_.unreadable();
    co_return result;
  }
  auto line = in_line(children, *births.value);
  LockStatus status;
  status.name = name;
  if (line.size() > kMostWaiters) {
    status.notes.push_back(
        fmt::format("{} in line, the first {} are named", line.size(), kMostWaiters));
    line.resize(kMostWaiters);
  }
  std::deque<PendingReply> pending;
  bool first = true;
  for (std::size_t i = 0; i < line.size(); ++i) {
    while (pending.size() < std::min(kDataAtOnce, line.size() - i)) {
      if (!session_->connected()) co_return result;
      const auto node = path + "/" + line[i + pending.size()].name;
      pending.push_back(session_->client().get(node));
    }
    auto asked = std::move(pending.front());
    pending.pop_front();
    auto reply = co_await reply_until(std::move(asked), deadline);
    if (reply.rc == ZNOAUTH && session_->connected()) {  // the node may be seen all the same
      auto look = session_->client().exists(path + "/" + line[i].name);
      reply = co_await reply_until(std::move(look), deadline);
    }
    if (reply.rc == ZNONODE) continue;
    if (reply.rc != ZOK) co_return result;
    if (auto newer = newer_node(path + "/" + line[i].name, reply.text); newer.error) {
      result.failure = std::move(newer);
      co_return result;
    }
    const auto metadata = read_metadata(reply.text);
    const bool beside =
        status.mode == Mode::shared && is_shared(line[i].kind) && status.waiting.empty();
    if (status.sealed || (!first && !beside)) {
      status.waiting.push_back(owner_of(line[i], metadata));
      continue;
    }
    SharedHolder holder;
    holder.token = static_cast<std::uint64_t>(born_of(metadata, reply.stat.czxid)) +
                   token_offset_.all().back();
    holder.owner = owner_of(line[i], metadata);
    holder.held_for =
        std::max(milliseconds(0), milliseconds(env_.wall_clock_ms() - reply.stat.ctime_ms));
    if (metadata) holder.remaining = metadata->session_timeout;
    if (metadata) holder.broken = metadata->broken;
    if (holder.broken) holder.remaining.reset();  // it depends on whether a breaker waits
    if (is_shared(line[i].kind)) status.readers.push_back(holder);
    if (!std::exchange(first, false)) continue;
    if (!metadata || line[i].kind == Contender::Kind::seal) {
      status.notes.emplace_back(note_on(line[i]));
    }
    status.sealed = line[i].kind == Contender::Kind::seal;
    if (status.sealed) continue;
    status.held = true;
    if (is_shared(line[i].kind)) status.mode = Mode::shared;
    status.token = holder.token;
    status.owner = std::move(holder.owner);
    status.held_for = holder.held_for;
    status.remaining = holder.remaining;
    status.broken = holder.broken;
    status.notes.push_back(fmt::format("session 0x{:x}", reply.stat.ephemeral_owner));
  }
  result.failure = {};
  result.value = std::move(status);
  co_return result;
}

asio::awaitable<ZooKeeperBackend::Found> ZooKeeperBackend::walk(std::string prefix,
                                                                TimePoint deadline) {
  Found found;
  std::deque<std::string> paths{prefix.empty() ? names_.root() : names_.path(prefix)};
  if (const bool done = co_await session_->ready(deadline); !done) co_return found;
  auto sync = session_->client().sync(paths.front());
  const auto synced = co_await reply_until(std::move(sync), deadline);
  if (is_loss(synced.rc)) co_return found;
  while (!paths.empty()) {
    if (!session_->connected()) co_return found;
    std::vector<std::pair<std::string, PendingReply>> pending;
    while (!paths.empty() && pending.size() < kListingsAtOnce) {
      pending.emplace_back(paths.front(), session_->client().children(paths.front()));
      paths.pop_front();
    }
    for (const auto& [path, one] : pending) {
      auto listing = co_await reply_until(one, deadline);
      if (is_loss(listing.rc)) co_return found;
      if (listing.rc != ZOK && listing.rc != ZNONODE && !found.left_out.error) {
        found.left_out = failure_of(listing.rc, "listing " + path);
      }
      const auto base = path == "/" ? path : path + "/";
      bool contended = false;
      const bool semaphore = has_semaphore(listing.children);
      for (const auto& child : listing.children) {
        if (parse_contender(child)) {
          contended = true;
        } else if (semaphore && is_part_of_semaphore(child)) {
          continue;  // no locks
        } else if (auto below = base + child;
                   below != "/zookeeper" && below != names_.notes() && below != names_.offset()) {
          paths.push_back(std::move(below));
        }
      }
      const auto name = contended || semaphore ? names_.name(path) : std::nullopt;
      if (!name) continue;
      if (semaphore) found.semaphores.push_back(*name);
      if (contended) found.locks.emplace_back(*name, std::move(listing.children));
    }
  }
  found.rc = ZOK;
  co_return found;
}

asio::awaitable<Result<std::vector<LockStatus>>> ZooKeeperBackend::list(std::string prefix,
                                                                        TimePoint deadline) {
  Result<std::vector<LockStatus>> result;
  result.failure = no_answer(*session_);
  std::vector<LockStatus> found;
  auto all = co_await walk(std::move(prefix), deadline);
  if (all.rc != ZOK) co_return result;
  for (auto& [name, children] : all.locks) {
    auto status = co_await describe(name, std::move(children), deadline);
    if (is_refusal(status.failure)) {
      if (!all.left_out.error) all.left_out = std::move(status.failure);
      continue;
    }
    if (!status.value) co_return result;
    found.push_back(std::move(*status.value));
  }
  std::sort(found.begin(), found.end(),
            [](const LockStatus& a, const LockStatus& b) { return a.name < b.name; });
  result.failure = std::move(all.left_out);
  result.value = std::move(found);
  co_return result;
}

/// Returns the holder with that token; without a token, the first holder.
asio::awaitable<ZooKeeperBackend::Holder> ZooKeeperBackend::holder_with(std::uint64_t token,
                                                                        std::string path,
                                                                        std::vector<Contender> line,
                                                                        TimePoint deadline) {
  Holder holder;
  line.resize(holders_of(line));
  for (const auto& one : line) {
    if (!session_->connected()) co_return holder;
    const auto node = path + "/" + one.name;
    // A node that replaced a writer's contains that writer's birth.
    const bool is_told = one.kind == Contender::Kind::read;
    auto look = is_told ? session_->client().get(node) : session_->client().exists(node);
    auto found = co_await reply_until(std::move(look), deadline);
    if (found.rc == ZNOAUTH && session_->connected()) {  // another program's data
      auto seen = session_->client().exists(node);
      found = co_await reply_until(std::move(seen), deadline);
    }
    if (found.rc != ZOK) co_return holder;
    if (auto newer = newer_node(node, found.text); newer.error) {
      holder.refused = std::move(newer);
      break;
    }
    const auto born =
        static_cast<std::uint64_t>(born_of(read_metadata(found.text), found.stat.czxid));
    // The offset that was in force when it was granted.
    const auto& offsets = token_offset_.all();
    const bool same = std::any_of(offsets.begin(), offsets.end(),
                                  [&](std::uint64_t offset) { return born + offset == token; });
    if (holder.present == 0) holder.present = born + offsets.back();
    if (!same) continue;
    holder.node = one.name;
    break;
  }
  holder.rc = ZOK;
  co_return holder;
}

// A holder whose link works gets the change before its next answer. One whose link does not has
// passed its local deadline one session timeout after the mark.
asio::awaitable<ZooKeeperBackend::Marking> ZooKeeperBackend::mark_node(std::string node, Break mark,
                                                                       EvictAnswer& answer,
                                                                       TimePoint deadline) {
  if (!session_->connected()) co_return Marking::again;
  auto look = session_->client().get(node);
  const auto found = co_await reply_until(std::move(look), deadline);
  if (is_loss(found.rc) || found.rc == ZNONODE) co_return Marking::again;
  if (found.rc != ZOK) {
    answer.failure = failure_of(found.rc, "reading " + node);
    co_return Marking::done;
  }
  auto metadata = read_metadata(found.text);
  answer.failure = newer_node(node, found.text);
  if (answer.failure.error) co_return Marking::done;
  if (!metadata || !metadata->breakable) {
    answer.failure = unaware_holder();
    co_return Marking::done;
  }
  const auto patience = std::max<Duration>(metadata->session_timeout, session_->timeout());
  if (!metadata->broken) {
    metadata->broken = std::move(mark);
    if (!session_->connected()) co_return Marking::again;
    auto change =
        session_->client().set_version(node, write_metadata(*metadata), found.stat.version);
    const auto changed = co_await reply_until(std::move(change), deadline);
    const bool again = is_loss(changed.rc) || changed.rc == ZNONODE || changed.rc == ZBADVERSION;
    if (again) co_return Marking::again;
    if (changed.rc != ZOK) {
      answer.failure = failure_of(changed.rc, "marking " + node);
      co_return Marking::done;
    }
  }
  const auto now = env_.now();
  // A name may be used again once the directory's counter has reached its end.
  auto birth = fmt::format("{}@{}", node, found.stat.czxid);
  const auto until = marked_.try_emplace(std::move(birth), now + patience).first->second;
  answer.within = std::chrono::ceil<milliseconds>(std::max(until - now, Duration::zero()));
  answer.needs_caller = true;
  co_return Marking::done;
}

/// Forgets the marks in that directory: the broken node is gone. Other readers are marked again.
void ZooKeeperBackend::forget_marks(const std::string& directory) {
  std::erase_if(marked_, [&](const auto& one) { return one.first.starts_with(directory + "/"); });
}

// The node's name is never used again, so what is true of its czxid stays true.
asio::awaitable<EvictAnswer> ZooKeeperBackend::evict(EvictRequest request, TimePoint deadline) {
  const auto& name = request.name;
  const auto path = names_.path(name);
  EvictAnswer answer;
  auto& failure = answer.failure;
  std::string asked;  // the node that we asked to delete, answer lost
  while (!closed_) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    const auto listing = co_await fresh_children(path, false, deadline);
    auto births = co_await births_of(path, births_to_ask(in_line(listing.children), {}), deadline);
    failure = std::move(births.failure);
    if (failure.error) co_return answer;
    if (!session_->connected() || !births.value || is_loss(listing.rc)) continue;
    const auto line = in_line(listing.children, *births.value);
    answer.is_free = !asked.empty() && std::none_of(line.begin(), line.end(),
                                                    [&](const auto& c) { return c.name == asked; });
    if (answer.is_free) co_return answer;
    if (line.empty()) {
      forget_marks(path);
      failure = {Error::not_held, name};
    }
    if (!line.empty() && line.front().kind == Contender::Kind::seal) {
      failure = {Error::sealed, "dlock migrate moves or opens it"};
    }
    if (failure.error) co_return answer;
    const auto offset = co_await token_offset_.value(deadline);
    if (is_loss(offset.rc) || !session_->connected()) continue;
    if (offset.rc == ZBADARGUMENTS) failure = token_offset_.unreadable();
    if (failure.error) co_return answer;
    auto found = co_await holder_with(request.token, path, line, deadline);
    if (found.rc != ZOK || !session_->connected()) continue;
    failure = std::move(found.refused);
    if (failure.error) co_return answer;
    if (found.node.empty()) {
      forget_marks(path);
      failure = {Error::held_with_other_token,
                 fmt::format("{} is held with token {}", name, found.present)};
      co_return answer;
    }
    const auto holder = path + "/" + found.node;
    if (!request.at_once) {
      const auto marking = co_await mark_node(holder, request.mark, answer, deadline);
      if (marking == Marking::again) continue;
      if (failure.error || answer.within != milliseconds(0)) co_return answer;
    }
    if (!session_->connected()) continue;
    asked = std::move(found.node);
    if (request.at_once) answer.within = std::chrono::ceil<milliseconds>(session_->timeout());
    auto removal = session_->client().mark_and_remove(holder, kBrokenByOperator);
    const auto removed = co_await reply_until(std::move(removal), deadline);
    if (!is_loss(removed.rc)) forget_marks(path);
    answer.is_free = removed.rc == ZOK;
    if (removed.rc == ZOK) co_return answer;
    if (removed.rc == ZNONODE) failure = {Error::not_held, name};
    if (removed.rc != ZNONODE && !is_loss(removed.rc)) {
      failure = failure_of(removed.rc, "deleting " + holder);
    }
    if (failure.error) co_return answer;
  }
  failure = no_answer(*session_);
  co_return answer;
}

}  // namespace dlock::zookeeper
