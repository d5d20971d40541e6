// SPDX-License-Identifier: Apache-2.0
//
// Requests to a holder to release the lock. A client changes the data of the holder's node, and the
// holder watches its node. In a Curator node the data becomes `__REVOKE__`, which Curator's
// revocable locks wait for; dlock accepts it too. In a dlock node the requester and the time are
// separate lines.
#include <fmt/format.h>

#include <algorithm>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/metadata.hpp"
#include "dlock/spi/error.hpp"
#include "dlock/spi/signal.hpp"

namespace dlock::zookeeper {

/// Called for a granted lock. A request may have arrived before the watch.
void ZooKeeperBackend::listen_for_askings(const NodeClaimPtr& claim) {
  if (!claim->request().tell_asked) return;
  watch_own_node(claim);
  look_at_own_data(claim);
}

/// Its node has changed, or may have.
void ZooKeeperBackend::look_at_own_data(const NodeClaimPtr& claim) {
  if (claim->guards != 0 || !usable(*claim)) return;
  if (claim->place != NodeClaim::Place::granted) return;
  auto asked = session_->client().get(claim->path());
  spawn(env_, read_own_data(alive_, this, claim, std::move(asked)));
}

asio::awaitable<void> ZooKeeperBackend::read_own_data(std::weak_ptr<bool> alive,
                                                      ZooKeeperBackend* self, NodeClaimPtr claim,
                                                      PendingReply asked) {
  const auto reply = co_await reply_until(std::move(asked), kNever);
  if (alive.expired() || claim->place != NodeClaim::Place::granted || reply.rc != ZOK) co_return;
  if (self->hear_of_break(claim, reply.text)) co_return;
  claim->own_changed = false;
  const auto how = read_asking(reply.text);
  if (!how || !claim->request().tell_asked) co_return;
  if (std::exchange(claim->asked_version, reply.stat.version) == reply.stat.version) co_return;
  self->sink_.on_asked(claim, *how);
}

/// The node stays until it is released, or the breaker deletes it. Data of a newer dlock may be a
/// mark: it ends the hold.
bool ZooKeeperBackend::hear_of_break(const NodeClaimPtr& claim, std::string_view data) {
  if (!may_be_broken(claim->path(), data)) return false;
  const auto metadata = read_metadata(data);
  auto words = metadata ? break_words(*metadata->broken) : newer_metadata(claim->path(), data);
  claim->broken_by = std::make_unique<const std::string>(std::move(words));
  sink_.on_claim_broken(claim, *claim->broken_by);
  return true;
}

asio::awaitable<AskAnswer> ZooKeeperBackend::ask(std::string name, std::uint64_t token,
                                                 Revocation how, TimePoint deadline) {
  AskAnswer answer;
  const auto path = names_.path(name);
  while (!closed_) {
    const bool ready = co_await session_->ready(deadline);
    if (!ready) break;
    const auto listing = co_await fresh_children(path, false, deadline);
    auto births = co_await births_of(path, births_to_ask(in_line(listing.children), {}), deadline);
    answer.failure = std::move(births.failure);
    if (answer.failure.error) co_return answer;
    if (!session_->connected() || !births.value || is_loss(listing.rc)) continue;
    const auto line = in_line(listing.children, *births.value);
    if (line.empty()) {
      answer.failure = {Error::not_held, name};
      co_return answer;
    }
    if (line.front().kind == Contender::Kind::seal) {
      answer.failure = {Error::sealed, "dlock migrate moves or opens it"};
      co_return answer;
    }
    const auto offset = co_await token_offset_.value(deadline);
    if (is_loss(offset.rc) || !session_->connected()) continue;
    auto found = co_await holder_with(token, path, line, deadline);
    if (found.rc != ZOK || !session_->connected()) continue;
    answer.failure = std::move(found.refused);
    if (answer.failure.error) co_return answer;
    if (token != 0 && found.node.empty()) {
      answer.failure = {Error::held_with_other_token,
                        fmt::format("{} is held with token {}", name, found.present)};
      co_return answer;
    }
    const auto holder = std::find_if(line.begin(), line.end(),
                                     [&](const Contender& one) { return one.name == found.node; });
    auto asked =
        co_await ask_node(path, holder == line.end() ? line.front() : *holder, how, deadline);
    if (!asked) continue;
    asked->token = token != 0 ? token : found.present;
    co_return std::move(*asked);
  }
  answer.failure = {session_->connected() ? Error::no_answer : Error::not_connected,
                    "servers " + session_->addresses()};
  co_return answer;
}

// A node's data is the holder's own: of a client that would not understand it, it is left alone.
asio::awaitable<std::optional<AskAnswer>> ZooKeeperBackend::ask_node(std::string path,
                                                                     Contender holder,
                                                                     Revocation how,
                                                                     TimePoint deadline) {
  AskAnswer answer;
  const auto node = path + "/" + holder.name;
  if (holder.kind == Contender::Kind::foreign || holder.kind == Contender::Kind::reader) {
    answer.failure =
        make_failure(errc::not_supported, "its holder is another program's, and not Curator's");
    co_return answer;
  }
  auto look = session_->client().get(node);
  const auto there = co_await reply_until(std::move(look), deadline);
  if (is_loss(there.rc) || there.rc == ZNONODE || !session_->connected()) co_return std::nullopt;
  if (there.rc != ZOK) {
    answer.failure = failure_of(there.rc, "reading " + node);
    co_return answer;
  }
  if (auto newer = newer_metadata(node, there.text); !newer.empty()) {
    answer.failure = {Error::newer_format, std::move(newer)};
    co_return answer;
  }
  std::string data(kRevoke);
  if (auto metadata = read_metadata(there.text)) {
    answer.heard = metadata->revocable ? Heard::yes : Heard::no;
    if (!metadata->revocable) co_return answer;
    metadata->asked = std::move(how);
    data = write_metadata(*metadata);
  }
  auto change = session_->client().set_version(node, data, there.stat.version);
  const auto changed = co_await reply_until(std::move(change), deadline);
  if (is_loss(changed.rc) || changed.rc == ZNONODE) co_return std::nullopt;
  if (changed.rc == ZBADVERSION) co_return std::nullopt;
  if (changed.rc != ZOK) answer.failure = failure_of(changed.rc, "asking " + node);
  co_return answer;
}

}  // namespace dlock::zookeeper
