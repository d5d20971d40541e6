// SPDX-License-Identifier: Apache-2.0
//
// A migration's record is a seal: a node in the lock's queue that sorts before every other node. A
// seal is read after a write of this session that a majority has committed, so an older state is
// never returned.
#include <algorithm>
#include <utility>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/contender.hpp"

namespace dlock::zookeeper {
namespace {

using Place = NodeClaim::Place;

RecordAnswer answer_of(RecordStatus status, std::string found = {}) {
  RecordAnswer answer;
  answer.status = status;
  if (!found.empty()) answer.found = std::move(found);
  return answer;
}

/// `lost`: what is not known of a request that got no answer.
RecordAnswer failed(int rc, RecordStatus lost, const std::string& doing) {
  auto answer = answer_of(is_loss(rc) ? lost : RecordStatus::failed);
  answer.failure = failure_of(rc, doing);
  if (rc == kNoTokenLeft) answer.failure = {Error::token_too_low, doing + ": no token is left"};
  return answer;
}

/// The answer for a conflict with the gate only.
RecordAnswer other_gate(std::string text) {
  auto answer = answer_of(RecordStatus::conflict);
  answer.gate = std::move(text);
  return answer;
}

/// An empty `text` deletes the seal.
PendingReply change_seal(Client& client, const std::optional<Client::Check>& gate,
                         const std::string& node, const std::string& text, std::int32_t version) {
  if (!gate) {
    return text.empty() ? client.remove_version(node, version)
                        : client.set_version(node, text, version);
  }
  Client::Change change;
  change.kind = text.empty() ? Client::Change::Kind::remove : Client::Change::Kind::set;
  change.path = node;
  change.data = text;
  change.version = version;
  return client.change_if(*gate, change);
}

struct SealQuestion {
  PendingReply proof;
  PendingReply list;
  std::optional<PendingReply> text;  ///< text of the seal that was met last
};

/// One segment.
SealQuestion ask_for_seal(Client& client, const std::string& root, const std::string& directory,
                          const std::string& known) {
  const Client::Burst burst(client);
  auto proof = client.prove(root);
  auto list = client.children(directory);
  std::optional<PendingReply> text;
  if (!known.empty()) text = client.get(known);
  return {std::move(proof), std::move(list), std::move(text)};
}

}  // namespace

// Sent together with our own node: the answer is no older than that.
void ZooKeeperBackend::ask_ahead(const NodeClaimPtr& claim, const std::string& seal) {
  claim->ahead.reset();
  if (seal.empty()) return;
  claim->ahead_path = seal;
  if (claim->request().queue) {
    watch_before(claim, seal, false);
    claim->ahead = session_->set_watch(seal);
  } else {
    claim->ahead = session_->client().get(seal);
  }
}

// Every waiter behind the seal, at any distance, is notified, and woken when the seal changes or is
// deleted.
asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::stand_behind_seal(NodeClaimPtr claim,
                                                                              std::string seal,
                                                                              TimePoint deadline) {
  if (!usable(*claim)) co_return Answer();
  const auto path = claim->directory + "/" + seal;
  const bool queues = claim->request().queue;
  std::unique_ptr<Session::Watch> old;
  const auto ask = [&] {
    if (auto asked = std::exchange(claim->ahead, std::nullopt);
        asked && claim->ahead_path == path) {
      if (queues) be_sure_of_own_watch(claim);
      return std::move(*asked);
    }
    old = std::move(claim->before);
    if (!queues) return session_->client().get(path);
    watch_before(claim, path, false);
    const Client::Burst burst(session_->client());
    be_sure_of_own_watch(claim);
    return session_->set_watch(path);
  };
  auto pending = ask();
  old.reset();
  auto reply = co_await reply_until(std::move(pending), deadline);
  if (claim->place != Place::queued || is_loss(reply.rc)) co_return Answer();
  if (reply.rc == ZNONODE) seals_.missed(claim->directory);
  if (reply.rc == ZNONODE) co_return Answer();  // the lock was opened this very moment
  if (reply.rc != ZOK) {
    ClaimAnswer refused;
    refused.status = ClaimStatus::failed;
    refused.failure = failure_of(reply.rc, "reading " + path);
    co_return co_await give_up_place(claim, std::move(refused), deadline);
  }
  seals_.met(claim->directory, path);
  ClaimAnswer sealed;
  sealed.status = ClaimStatus::sealed;
  sealed.record = std::move(reply.text);
  if (queues) co_return sealed;
  co_return co_await give_up_place(claim, std::move(sealed), deadline);
}

asio::awaitable<ZooKeeperBackend::Text> ZooKeeperBackend::find_seal(std::string directory,
                                                                    TimePoint deadline) {
  Text text;
  while (is_loss(text.rc) && !closed_) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    if (session_->connected()) {
      const auto known = seals_.of(directory);
      auto asked = ask_for_seal(session_->client(), names_.root(), directory, known);
      const auto proven = co_await reply_until(asked.proof, deadline);
      auto listing = co_await reply_until(asked.list, deadline);
      if (is_loss(proven.rc)) listing.rc = proven.rc;
      text.rc = listing.rc == ZNONODE ? ZOK : listing.rc;
      const auto line = in_line(listing.children);
      const bool sealed = !line.empty() && line.front().kind == Contender::Kind::seal;
      if (text.rc == ZOK && !sealed) seals_.missed(directory);
      if (text.rc == ZOK && sealed) {
        const auto seal = directory + "/" + line.front().name;
        auto pending = seal == known ? std::move(asked.text) : std::nullopt;
        text = co_await read_text(seal, std::move(pending), deadline);
        if (text.rc == ZOK) seals_.met(directory, seal);
        // the seal was deleted since: list again
        if (text.rc == ZNONODE) text.rc = ZCONNECTIONLOSS;
      }
    }
    if (env_.now() >= deadline) break;
  }
  co_return text;
}

/// `pending`: it has been asked for.
asio::awaitable<ZooKeeperBackend::Text> ZooKeeperBackend::read_text(
    std::string node, std::optional<PendingReply> pending, TimePoint deadline) {
  Text text;
  if (!pending) {
    if (!session_->connected()) co_return text;
    pending = session_->client().get(node);
  }
  auto reply = co_await reply_until(std::move(*pending), deadline);
  text.rc = reply.rc;
  if (reply.rc != ZOK) co_return text;
  text.node = std::move(node);
  text.text = std::move(reply.text);
  text.version = reply.stat.version;
  co_return text;
}

asio::awaitable<RecordAnswer> ZooKeeperBackend::record(std::string name, TimePoint deadline) {
  const auto directory = names_.path(name);
  auto seal = co_await find_seal(directory, deadline);
  if (seal.rc == ZOK) co_return answer_of(RecordStatus::done, std::move(seal.text));
  co_return failed(seal.rc, RecordStatus::unavailable, "reading the record of " + directory);
}

// Waiters for this node see a change, not a deletion. So they do not acquire the lock without
// another listing of the queue.
asio::awaitable<RecordAnswer> ZooKeeperBackend::seal(ClaimPtr held, std::string record,
                                                     TimePoint deadline) {
  const auto ours = std::static_pointer_cast<NodeClaim>(std::move(held));
  const auto& directory = ours->directory;
  const bool ready = co_await session_->ready(deadline);
  if (!ready) co_return failed(ZCONNECTIONLOSS, RecordStatus::unavailable, "sealing " + directory);
  std::optional<Client::Check> gate;
  if (const auto& expected = ours->request().gate; expected && ours->place == Place::granted) {
    auto found = co_await look_at_gate(expected, deadline);
    if (found.rc != ZOK) co_return failed(found.rc, RecordStatus::unavailable, directory);
    if (!found.check && ours->place == Place::granted) co_return other_gate(std::move(found.text));
    gate = std::move(found.check);
  }
  if (usable(*ours) && ours->place == Place::granted) {
    ours->own.reset();
    ours->removing = true;
    const auto heir = directory + "/" + seal_name(ours->request().owner.id, ours->read_write);
    auto& client = session_->client();
    const std::string mark = "dlock: sealed by a migration";
    Client::Change replace;
    replace.kind = Client::Change::Kind::replace;
    replace.path = ours->path();
    replace.data = mark;
    replace.heir = heir;
    replace.text = record;
    auto sealing =
        gate ? client.change_if(*gate, replace)
             : client.mark_and_replace(ours->path(), mark, heir, record, Client::Mode::persistent);
    const auto sealed = co_await reply_until(std::move(sealing), deadline);
    ours->removing = false;
    if (sealed.rc == ZOK) {
      seals_.met(directory, heir);
      ours->leave_queue();
      co_return answer_of(RecordStatus::done);
    }
    // The holder may need the notification that its node ended.
    if (!ours->node.empty() && ours->session == session_->number()) {
      be_sure_of_own_watch(ours);
    }
    if (sealed.rc == kCheckFailed) {
      gates_.forget(ours->request().gate->key);
      auto found = co_await look_at_gate(ours->request().gate, deadline);
      if (found.rc != ZOK) co_return failed(found.rc, RecordStatus::unavailable, directory);
      co_return other_gate(std::move(found.text));
    }
    if (sealed.rc != ZNONODE && sealed.rc != ZNODEEXISTS) {
      co_return failed(sealed.rc, RecordStatus::unknown, "sealing " + directory);
    }
  }
  auto seal = co_await find_seal(directory, deadline);
  co_return answer_of(RecordStatus::conflict, std::move(seal.text));
}

// The lock's own node is older than every node of the queue.
asio::awaitable<int> ZooKeeperBackend::raise_for(std::string node, std::uint64_t min_token,
                                                 TimePoint deadline) {
  if (!session_->connected()) co_return ZCONNECTIONLOSS;
  auto looking = session_->client().exists(node);
  const auto found = co_await reply_until(std::move(looking), deadline);
  if (found.rc != ZOK) co_return found.rc;
  const auto born = static_cast<std::uint64_t>(found.stat.czxid);
  if (min_token <= born) co_return ZOK;
  co_return co_await token_offset_.raise(min_token - born, deadline);
}

asio::awaitable<RecordAnswer> ZooKeeperBackend::set_record_under(GatePtr gate, std::string name,
                                                                 std::string from,
                                                                 std::optional<std::string> to,
                                                                 std::uint64_t min_token,
                                                                 TimePoint deadline) {
  const auto directory = names_.path(name);
  const auto next = to.value_or("");
  int rc = ZBADVERSION;
  while (rc == ZBADVERSION || rc == ZNONODE || rc == kCheckFailed) {
    auto seal = co_await find_seal(directory, deadline);
    if (seal.rc != ZOK) co_return failed(seal.rc, RecordStatus::unavailable, directory);
    if (seal.node.empty() || seal.text != from) {
      co_return answer_of(RecordStatus::conflict, std::move(seal.text));
    }
    std::optional<Client::Check> check;
    if (gate) {
      auto found = co_await look_at_gate(gate, deadline);
      if (found.rc != ZOK) co_return failed(found.rc, RecordStatus::unavailable, directory);
      if (!found.check) co_return other_gate(std::move(found.text));
      check = std::move(found.check);
    }
    if (next.empty()) {
      const int raised = co_await raise_for(directory, min_token, deadline);
      auto refused = failed(raised, RecordStatus::unavailable, names_.offset());
      if (raised == ZBADARGUMENTS) refused.failure = token_offset_.unreadable();
      if (raised != ZOK) co_return refused;
    }
    if (!session_->connected()) {
      co_return failed(ZCONNECTIONLOSS, RecordStatus::unavailable, directory);
    }
    auto writing = change_seal(session_->client(), check, seal.node, next, seal.version);
    rc = (co_await reply_until(std::move(writing), deadline)).rc;
    if (rc == kCheckFailed) gates_.forget(gate->key);
  }
  if (rc == ZOK) co_return answer_of(RecordStatus::done);
  co_return failed(rc, RecordStatus::unknown, "changing the record of " + directory);
}

asio::awaitable<RecordAnswer> ZooKeeperBackend::raise(ClaimPtr held, std::uint64_t min_token,
                                                      TimePoint deadline) {
  const auto ours = std::static_pointer_cast<NodeClaim>(std::move(held));
  const auto doing = "raising the tokens of " + ours->directory;
  const bool ready = co_await session_->ready(deadline);
  if (!ready) co_return failed(ZCONNECTIONLOSS, RecordStatus::unavailable, doing);
  if (!usable(*ours) || ours->place != Place::granted) co_return answer_of(RecordStatus::conflict);
  const auto path = ours->path();
  auto proving = session_->client().prove(path);
  const auto proven = co_await reply_until(std::move(proving), deadline);
  if (proven.rc == ZNONODE) co_return answer_of(RecordStatus::conflict);
  if (proven.rc != ZOK) co_return failed(proven.rc, RecordStatus::unavailable, doing);
  const int rc = co_await raise_for(path, min_token, deadline);
  if (rc == ZNONODE) co_return answer_of(RecordStatus::conflict);
  if (rc == ZOK) co_return answer_of(RecordStatus::done);
  auto refused = failed(rc, RecordStatus::unknown, doing);
  if (rc == ZBADARGUMENTS) refused.failure = token_offset_.unreadable();
  co_return refused;
}

asio::awaitable<RecordAnswer> ZooKeeperBackend::note(std::string key, TimePoint deadline) {
  const auto path = names_.note(key);
  Text found;
  while (is_loss(found.rc) && !closed_) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    auto proving = session_->client().prove(names_.root());
    auto reading = session_->client().get(path);
    const auto proven = co_await reply_until(std::move(proving), deadline);
    auto reply = co_await reply_until(std::move(reading), deadline);
    found.rc = is_loss(proven.rc) ? proven.rc : reply.rc;
    found.text = std::move(reply.text);
    found.version = reply.stat.version;
    if (env_.now() >= deadline) break;
  }
  if (found.rc == ZNONODE) gates_.forget(key);
  if (found.rc == ZNONODE) co_return answer_of(RecordStatus::done);
  if (found.rc == ZOK) {
    gates_.learn(key, found.text, found.version);
    co_return answer_of(RecordStatus::done, std::move(found.text));
  }
  co_return failed(found.rc, RecordStatus::unavailable, "reading " + path);
}

asio::awaitable<int> ZooKeeperBackend::write_note(std::string path, Text found, std::string text,
                                                  TimePoint deadline) {
  if (!session_->connected()) co_return ZCONNECTIONLOSS;
  auto& client = session_->client();
  if (found.node.empty()) {
    auto parent = client.create(names_.notes(), {}, Client::Mode::persistent);
    auto making = client.create(path, text, Client::Mode::persistent);
    const auto parent_made = co_await reply_until(std::move(parent), deadline);
    const auto made = co_await reply_until(std::move(making), deadline);
    const bool parent_there = parent_made.rc == ZOK || parent_made.rc == ZNODEEXISTS;
    co_return made.rc == ZNONODE && !parent_there ? parent_made.rc : made.rc;
  }
  auto writing = text.empty() ? client.remove_version(path, found.version)
                              : client.set_version(path, text, found.version);
  const auto written = co_await reply_until(std::move(writing), deadline);
  co_return written.rc;
}

asio::awaitable<RecordAnswer> ZooKeeperBackend::set_note(std::string key,
                                                         std::optional<std::string> from,
                                                         std::optional<std::string> to,
                                                         TimePoint deadline) {
  const auto path = names_.note(key);
  for (;;) {
    const auto current = co_await note(key, deadline);
    if (current.status != RecordStatus::done) co_return current;
    if (current.found.value_or("") != from.value_or("")) {
      co_return answer_of(RecordStatus::conflict, current.found.value_or(""));
    }
    if (!current.found && to.value_or("").empty()) co_return answer_of(RecordStatus::done);
    // A gate that was never changed is a node without a text.
    auto found = co_await read_text(path, std::nullopt, deadline);
    if (found.rc != ZOK && found.rc != ZNONODE) {
      co_return failed(found.rc, RecordStatus::unavailable, path);
    }
    if (found.text != current.found.value_or("")) continue;
    const int rc = co_await write_note(path, std::move(found), to.value_or(""), deadline);
    if (rc == ZOK) co_return answer_of(RecordStatus::done);
    const bool changed = rc == ZBADVERSION || rc == ZNONODE || rc == ZNODEEXISTS;
    if (!changed) co_return failed(rc, RecordStatus::unknown, "writing " + path);
  }
}

// A transaction has its moment from the leader of the ensemble; a node shows that of its last one.
asio::awaitable<Result<std::chrono::milliseconds>> ZooKeeperBackend::time(TimePoint deadline) {
  const auto path = names_.clock();
  Reply written;
  written.rc = ZCONNECTIONLOSS;
  do {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    auto& client = session_->client();
    auto writing = client.set(path, {});
    written = co_await reply_until(std::move(writing), deadline);
    if (written.rc != ZNONODE) continue;
    auto parent = client.create(names_.notes(), {}, Client::Mode::persistent);
    auto making = client.create(path, {}, Client::Mode::persistent);
    co_await reply_until(std::move(parent), deadline);
    const auto made = co_await reply_until(std::move(making), deadline);
    if (made.rc == ZOK || made.rc == ZNODEEXISTS) written.rc = ZCONNECTIONLOSS;
  } while (is_loss(written.rc) && !closed_ && env_.now() < deadline);
  Result<std::chrono::milliseconds> result;
  if (written.rc == ZOK) {
    result.value = std::chrono::milliseconds(written.stat.mtime_ms);
  } else {
    result.failure = failure_of(written.rc, "asking for the time with " + path);
  }
  co_return result;
}

}  // namespace dlock::zookeeper
