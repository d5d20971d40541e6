// SPDX-License-Identifier: Apache-2.0
//
// A plan's gate is a note, and so a node. A request under the gate is one transaction with a check
// that the gate's data has the version that was read. Versions never repeat while a node exists,
// and a gate is never deleted.
#include <algorithm>
#include <deque>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/contender.hpp"

namespace dlock::zookeeper {
namespace {

template <class T>
Result<T> no_result(int rc, const Session& session, const std::string& doing) {
  Result<T> result;
  result.failure = failure_of(rc, doing);
  if (is_loss(rc)) {
    result.failure = {session.connected() ? Error::no_answer : Error::not_connected,
                      "servers " + session.addresses()};
  }
  return result;
}

}  // namespace

asio::awaitable<ZooKeeperBackend::GateLook> ZooKeeperBackend::look_at_gate(GatePtr gate,
                                                                           TimePoint deadline) {
  GateLook look;
  const auto path = names_.note(gate->key);
  for (;;) {
    if (const auto version = gates_.version_of(gate->key, gate->text)) {
      look.rc = ZOK;
      look.check = Client::Check{path, *version};
      co_return look;
    }
    if (!session_->connected()) co_return look;
    // After a write: it is not older than what has turned us away.
    auto proving = session_->client().prove(names_.root());
    auto reading = session_->client().get(path);
    const auto proven = co_await reply_until(std::move(proving), deadline);
    auto found = co_await reply_until(std::move(reading), deadline);
    look.rc = is_loss(proven.rc) ? proven.rc : found.rc;
    if (look.rc == ZNONODE && gate->text.empty()) {
      look.rc = co_await make_gate(gate->key, deadline);
      if (look.rc == ZOK) continue;
      co_return look;
    }
    if (look.rc == ZNONODE) look.rc = ZOK;
    if (look.rc != ZOK) co_return look;
    if (found.rc == ZOK) gates_.learn(gate->key, found.text, found.stat.version);
    if (found.rc == ZOK && found.text == gate->text) continue;
    look.text = std::move(found.text);
    co_return look;
  }
}

// Creates the gate, because a check needs an existing node. `key` empty: creates only its parent.
asio::awaitable<int> ZooKeeperBackend::make_gate(std::string key, TimePoint deadline) {
  if (!session_->connected()) co_return ZCONNECTIONLOSS;
  auto nodes = names_.root_nodes();
  nodes.push_back(names_.notes());
  if (!key.empty()) nodes.push_back(names_.note(key));
  std::vector<PendingReply> pending;
  for (const auto& node : nodes) {
    pending.push_back(session_->client().create(node, {}, Client::Mode::persistent));
  }
  int rc = ZOK;
  for (auto& one : pending) {
    const auto made = co_await reply_until(one, deadline);
    rc = made.rc == ZNODEEXISTS ? ZOK : made.rc;
  }
  co_return rc;
}

// A record takes precedence over the gate. The claim has no node in the queue.
asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::turned_away(NodeClaimPtr claim,
                                                                        std::string gate,
                                                                        TimePoint deadline) {
  auto seal = co_await find_seal(claim->directory, deadline);
  if (is_loss(seal.rc)) co_return Answer();
  ClaimAnswer answer;
  if (seal.rc != ZOK) {
    answer.status = ClaimStatus::failed;
    answer.failure = failure_of(seal.rc, "reading the record of " + claim->directory);
    co_return answer;
  }
  const bool sealed = !seal.node.empty();
  answer.status = sealed ? ClaimStatus::sealed : ClaimStatus::gate_changed;
  answer.record = sealed ? std::move(seal.text) : std::move(gate);
  co_return answer;
}

// Each listing is requested after a write of this session, so it contains everything from before
// the gate's change.
asio::awaitable<Result<std::vector<std::string>>> ZooKeeperBackend::claimed_names(
    std::string prefix, TimePoint deadline) {
  using Names = std::vector<std::string>;
  const std::string doing = "listing locks";
  const bool ready = co_await session_->ready(deadline);
  if (!ready) co_return no_result<Names>(ZCONNECTIONLOSS, *session_, doing);
  const auto number = session_->number();
  auto proving = session_->client().prove(names_.root());
  const auto proven = co_await reply_until(std::move(proving), deadline);
  if (is_loss(proven.rc)) co_return no_result<Names>(proven.rc, *session_, doing);
  Names claimed;
  std::deque<std::string> paths{prefix.empty() ? names_.root() : names_.path(prefix)};
  while (!paths.empty()) {
    if (!session_->connected() || session_->number() != number) {
      co_return no_result<Names>(ZCONNECTIONLOSS, *session_, doing);
    }
    std::vector<std::pair<std::string, PendingReply>> pending;
    while (!paths.empty() && pending.size() < kListingsAtOnce) {
      pending.emplace_back(paths.front(), session_->client().children(paths.front()));
      paths.pop_front();
    }
    for (const auto& [path, one] : pending) {
      const auto listing = co_await reply_until(one, deadline);
      if (listing.rc != ZOK && listing.rc != ZNONODE) {
        co_return no_result<Names>(listing.rc, *session_, "listing " + path);
      }
      const auto base = path == "/" ? path : path + "/";
      for (const auto& child : listing.children) {
        if (parse_contender(child)) continue;
        auto below = base + child;
        const bool aside =
            below == "/zookeeper" || below == names_.notes() || below == names_.offset();
        if (!aside) paths.push_back(std::move(below));
      }
      const auto line = in_line(listing.children);
      const bool free = line.empty() || line.front().kind == Contender::Kind::seal;
      const auto name = free ? std::nullopt : names_.name(path);
      if (name) claimed.push_back(*name);
    }
  }
  std::sort(claimed.begin(), claimed.end());
  Result<Names> result;
  result.value = std::move(claimed);
  co_return result;
}

// A token is a transaction's number plus an offset. So the token of a node that is created now is
// above all earlier ones. The notification of a raised offset arrives before the answer to a later
// write.
asio::awaitable<Result<std::uint64_t>> ZooKeeperBackend::highest_token(TimePoint deadline) {
  const std::string doing = "asking for the newest transaction";
  const bool ready = co_await session_->ready(deadline);
  if (!ready) co_return no_result<std::uint64_t>(ZCONNECTIONLOSS, *session_, doing);
  const auto node = names_.notes() + "/%newest-";
  auto made = session_->client().create(node, {}, Client::Mode::ephemeral_sequential);
  auto reply = co_await reply_until(std::move(made), deadline);
  if (reply.rc == ZNONODE) {
    const int rc = co_await make_gate({}, deadline);
    if (rc != ZOK) co_return no_result<std::uint64_t>(rc, *session_, doing);
    if (session_->connected()) {
      auto again = session_->client().create(node, {}, Client::Mode::ephemeral_sequential);
      reply = co_await reply_until(std::move(again), deadline);
    }
  }
  if (reply.rc != ZOK) co_return no_result<std::uint64_t>(reply.rc, *session_, doing);
  if (session_->connected()) session_->client().remove(reply.text);
  const auto offset = co_await token_offset_.value(deadline);
  if (offset.rc == ZBADARGUMENTS) {
    Result<std::uint64_t> unreadable;
    unreadable.failure = token_offset_.unreadable();
    co_return unreadable;
  }
  if (offset.rc != ZOK) {
    co_return no_result<std::uint64_t>(offset.rc, *session_, "reading " + names_.offset());
  }
  Result<std::uint64_t> result;
  result.value = static_cast<std::uint64_t>(reply.stat.czxid) + offset.offset;
  co_return result;
}

}  // namespace dlock::zookeeper
