// SPDX-License-Identifier: Apache-2.0
//
// Acquires a lock. The create and the listing are sent together: one round trip if no other client
// is queued. Otherwise it watches the nearest predecessor, and lists again when that node is gone.
// Without a listing where none is needed (rules/undisturbed.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/contender.hpp"
#include "backends/zookeeper/rules/metadata.hpp"
#include "dlock/sequencer.hpp"

namespace dlock::zookeeper {
namespace {

using std::chrono::milliseconds;
using Place = NodeClaim::Place;

ClaimAnswer failed(Failure failure) {
  ClaimAnswer answer;
  answer.status = ClaimStatus::failed;
  answer.failure = std::move(failure);
  return answer;
}

/// The answer at the deadline. It depends on whether the claim may have a node in the queue.
ClaimAnswer no_answer(const NodeClaim& claim, const Session& session) {
  ClaimAnswer answer;
  answer.status = claim.place == Place::nowhere ? ClaimStatus::unavailable : ClaimStatus::unknown;
  answer.failure.error = session.connected() ? Error::no_answer : Error::not_connected;
  answer.failure.text = "servers " + session.addresses();
  return answer;
}

/// The answer of a claim that was not let in: it has sent nothing.
ClaimAnswer crowded(const NodeClaim& claim, const Session& session, std::size_t waiting) {
  auto answer = no_answer(claim, session);
  if (session.connected()) {
    answer.failure.text =
        fmt::format("{} claims of this process wait to be sent, 256 at a time; servers {}", waiting,
                    session.addresses());
  }
  return answer;
}

struct Entrance {
  std::vector<PendingReply> parents;
  PendingReply create;
  std::optional<Listings::Ask> list;
};

PendingReply send_create(Client& client, const NodeClaim& claim, Contender::Kind kind,
                         const std::optional<Client::Check>& gate, const std::string& data) {
  const auto prefix = claim.path_of(contender_prefix(claim.request().owner.id, kind));
  constexpr auto kMode = Client::Mode::ephemeral_sequential;
  if (!gate) return client.create(prefix, data, kMode);
  return client.change_if(*gate, {Client::Change::Kind::create, prefix, data, kMode});
}

/// One segment. It includes the parents only after the server has reported that one is missing.
Entrance send_entrance(Client& client, Listings& listings, const NodeClaim& claim,
                       Contender::Kind kind, const std::optional<Client::Check>& gate,
                       const std::string& data, const std::vector<std::string>& root,
                       const std::vector<std::string>& nodes) {
  const Client::Burst burst(client);
  std::vector<PendingReply> parents;
  parents.reserve(root.size() + nodes.size());
  for (const auto& node : root) {
    parents.push_back(client.create(node, {}, Client::Mode::persistent));
  }
  for (const auto& node : nodes) {
    parents.push_back(client.create(node, {}, Client::Mode::container));
  }
  auto create = send_create(client, claim, kind, gate, data);
  auto list = listings.ask(claim.directory);
  return {std::move(parents), std::move(create), std::move(list)};
}

struct Two {
  PendingReply first;
  PendingReply second;
};

/// A listing after every earlier request of this session was committed, or never will be. `sync`
/// does not wait for that. A leader answers the `sync` of its own clients while transactions are
/// outstanding, also those of another connection of this process (found by the simulation).
Two settle_and_list(Client& client, const std::string& root, const std::string& directory) {
  const Client::Burst burst(client);
  auto settled = client.prove(root);
  auto list = client.children(directory);
  return {std::move(settled), std::move(list)};
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

// The core's timeout of a request begins when it is sent. Until then the claim waits here, while
// the servers answer any request.
asio::awaitable<ClaimAnswer> ZooKeeperBackend::claim(ClaimPtr claim, TimePoint deadline) {
  const auto ours = std::static_pointer_cast<NodeClaim>(claim);
  if (ours->guard) co_return co_await claim_permits(ours, deadline);
  const auto patience = std::min<Duration>(deadline - env_.now(), std::chrono::hours(1));
  ours->woken = ours->interrupted = false;
  while (!closed_) {
    bool ready = session_->is_ready(deadline);
    if (!ready) ready = co_await session_->ready(deadline);
    if (!ready) break;
    forget_old_session(*ours);
    // A claim whose turn it is usually needs no request.
    if (ours->place == Place::queued && ours->before_gone && ours->before_decides) {
      auto answer = co_await go_on(ours, deadline);
      if (answer) co_return std::move(*answer);
    } else {
      const auto asked = env_.now();
      Gate::Pass pass(claiming_, ours->place != Place::nowhere, ours->signal);
      bool inside = pass.inside();
      if (!inside) inside = co_await let_in(ours, pass, patience);
      if (!inside) co_return crowded(*ours, *session_, claiming_.waiting());
      if (deadline != kNever) deadline += env_.now() - asked;
      if (session_->connected() && !closed_) {
        auto answer = co_await go_on(ours, deadline);
        if (answer) co_return std::move(*answer);
      }
    }
    if (env_.now() >= deadline) break;
  }
  co_return no_answer(*ours, *session_);
}

asio::awaitable<bool> ZooKeeperBackend::let_in(NodeClaimPtr claim, Gate::Pass& pass,
                                               Duration patience) {
  const auto asked = env_.now();
  while (!pass.inside() && !claim->interrupted && !closed_) {
    const auto until = std::max(asked, session_->last_answer()) + patience;
    if (env_.now() >= until) break;
    co_await claim->signal.wait_until(until);
  }
  co_return pass.inside();
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::go_on(NodeClaimPtr claim,
                                                                  TimePoint deadline) {
  forget_old_session(*claim);
  switch (claim->place) {
    case Place::nowhere:
      return enter(std::move(claim), deadline);
    case Place::doubtful:
      return find_own(std::move(claim), deadline);
    case Place::queued:
      break;
    case Place::granted:
      // The grant was not returned: it arrived too late. The node may have been deleted since.
      claim->place = Place::queued;
      claim->before_decides = false;
      break;
  }
  return look(std::move(claim), deadline);
}

bool ZooKeeperBackend::usable(const NodeClaim& claim) const {
  return session_->connected() && claim.session == session_->number();
}

void ZooKeeperBackend::forget_old_session(NodeClaim& claim) {
  if (claim.session == session_->number()) return;
  claim.leave_queue();
  claim.session = session_->number();
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::enter(NodeClaimPtr claim,
                                                                  TimePoint deadline) {
  std::optional<Client::Check> gate;
  if (const auto& expected = claim->request().gate) {
    auto found = co_await look_at_gate(expected, deadline);
    if (is_loss(found.rc) || !usable(*claim) || claim->place != Place::nowhere) co_return Answer();
    if (found.rc != ZOK) co_return failed(failure_of(found.rc, names_.note(expected->key)));
    if (!found.check) co_return co_await turned_away(claim, std::move(found.text), deadline);
    gate = std::move(found.check);
  }
  Metadata metadata{claim->request().owner,
                    std::chrono::duration_cast<milliseconds>(session_->timeout())};
  metadata.permits = claim->guards;
  metadata.revocable = claim->request().tell_asked;
  metadata.breakable = claim->guards == 0;
  const auto data = write_metadata(metadata);
  const bool shared = claim->request().mode == Mode::shared;
  const auto alone = claim->guards != 0 ? Contender::Kind::mutex : exclusive_kind_;
  const auto kind = shared ? Contender::Kind::read : alone;
  claim->entering = true;
  const auto basis = undisturbed_.basis(claim->directory);
  const auto knock = [&]() -> Entrance {
    auto& client = session_->client();
    if (basis != 0 && undisturbed_.is_likely()) {
      return {{}, send_create(client, *claim, kind, gate, data), {}};
    }
    const Client::Burst burst(client);
    auto entrance = send_entrance(client, *listings_, *claim, kind, gate, data, {}, {});
    ask_ahead(claim, seals_.of(claim->directory));
    return entrance;
  };
  std::optional<Entrance> sent(knock());
  auto created = in_time(co_await sent->create.get_until(deadline));
  if (created.rc == ZNONODE && usable(*claim)) {
    sent.reset();  // first: its listing is over
    auto nodes = names_.nodes(claim->request().name);
    if (claim->guards != 0) nodes.push_back(claim->directory);
    sent.emplace(send_entrance(session_->client(), *listings_, *claim, kind, gate, data,
                               names_.root_nodes(), nodes));
    created = in_time(co_await sent->create.get_until(deadline));
  }
  claim->entering = false;
  if (created.rc != ZOK) {
    claim->wait_for_nobody();
    claim->ahead.reset();
  }
  if (is_loss(created.rc)) {
    if (claim->session == session_->number()) {
      claim->place = Place::doubtful;
      unresolved_creates_->add(claim);
    }
    co_return Answer();
  }
  if (created.rc == kCheckFailed) {
    gates_.forget(claim->request().gate->key);
    co_return Answer();  // it is read now
  }
  if (created.rc != ZOK) {
    for (auto& parent : sent->parents) {
      const auto reply = co_await reply_until(parent, deadline);
      if (reply.rc != ZOK && reply.rc != ZNODEEXISTS) created.rc = reply.rc;
    }
    if (created.rc == ZNONODE) co_return Answer();  // reaped this very moment
    co_return failed(failure_of(created.rc, "creating a node below " + claim->directory));
  }
  claim->place = Place::queued;
  claim->removing = false;
  claim->node = last_part(created.text);
  claim->czxid = created.stat.czxid;
  claim->waiting.emplace(session_);
  const bool is_same = undisturbed_.basis(claim->directory) == basis;
  const bool alone_still = is_same && Undisturbed::proves(basis, claim->czxid);
  undisturbed_.entered(alone_still);
  Listing listing;
  if (sent->list) {
    listing = co_await Listings::Ask::wait(std::move(*sent->list), deadline);
  } else if (alone_still) {
    listing = {ZOK, std::make_shared<const Queue>(std::vector(1, claim->node))};
  }
  if (listing.rc != ZOK) co_return Answer();
  auto answer = co_await judge(claim, std::move(listing.line), deadline);
  claim->ahead.reset();
  co_return answer;
}

// After a create whose answer was lost: adopt the node if it is there and of this session.
asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::find_own(NodeClaimPtr claim,
                                                                     TimePoint deadline) {
  auto sent = settle_and_list(session_->client(), names_.root(), claim->directory);
  const auto settled = co_await reply_until(sent.first, deadline);
  const auto listing = co_await reply_until(sent.second, deadline);
  if (is_loss(settled.rc) || is_loss(listing.rc)) co_return Answer();
  const auto session_id = session_->client().session_id();
  for (const auto& copy : copies_of(claim->request().owner.id, listing.children)) {
    if (!usable(*claim)) co_return Answer();
    const auto path = claim->directory + "/" + copy;
    auto pending = session_->client().exists(path);
    const auto reply = co_await reply_until(std::move(pending), deadline);
    if (is_loss(reply.rc)) co_return Answer();
    if (reply.rc != ZOK || !usable(*claim)) continue;
    const bool ours = reply.stat.ephemeral_owner == session_id;
    if (claim->place == Place::doubtful && ours) {
      claim->place = Place::queued;
      claim->node = copy;
      claim->czxid = reply.stat.czxid;
      claim->waiting.emplace(session_);
    } else {
      session_->client().remove(path);
    }
  }
  if (claim->place == Place::doubtful) claim->place = Place::nowhere;
  co_return Answer();
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::look(NodeClaimPtr claim,
                                                                 TimePoint deadline) {
  // The claim is giving up its place, and does not know whether the node is deleted.
  if (claim->removing) {
    ClaimAnswer unused;
    co_await give_up_place(claim, std::move(unused), deadline);
    co_return Answer();
  }
  if (claim->before_gone && claim->before_decides) co_return co_await take(claim, deadline);
  auto asked = listings_->ask(claim->directory);
  auto listing = co_await Listings::Ask::wait(std::move(asked), deadline);
  if (is_loss(listing.rc)) co_return Answer();
  if (listing.rc != ZOK && listing.rc != ZNONODE) {
    auto refused = failed(failure_of(listing.rc, "listing " + claim->directory));
    co_return co_await give_up_place(claim, std::move(refused), deadline);
  }
  if (!listing.line) listing.line = std::make_shared<const Queue>(std::vector<std::string>());
  co_return co_await judge(claim, std::move(listing.line), deadline);
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::judge(NodeClaimPtr claim,
                                                                  std::shared_ptr<const Queue> line,
                                                                  TimePoint deadline) {
  Births births;
  auto decision = line->decision_of(claim->node);
  std::vector<std::string> nodes;
  if (decision.kind == QueueDecision::Kind::unborn) nodes = line->names();
  while (decision.kind == QueueDecision::Kind::unborn) {
    if (!usable(*claim)) co_return Answer();
    const auto unborn = std::move(decision.unborn);
    auto learned = co_await births_of(claim->directory, unborn, deadline);
    if (learned.failure.error) {
      auto refused = failed(std::move(learned.failure));
      co_return co_await give_up_place(claim, std::move(refused), deadline);
    }
    if (!learned.value) co_return Answer();
    for (const auto& node : unborn) {
      if (!learned.value->contains(node)) std::erase(nodes, node);
    }
    births.merge(*learned.value);
    decision = decision_of(claim->node, nodes, births);
  }
  if (claim->place != Place::queued) co_return Answer();  // its node was taken away meanwhile
  if (line->has_only(claim->node)) undisturbed_.alone(claim->directory, claim->czxid);
  remove_strays(*claim, *line);
  claim->read_write = decision.read_write;
  if (claim->ahead && decision.seal.empty()) {
    seals_.missed(claim->directory);
    claim->ahead.reset();
  }
  if (decision.kind == QueueDecision::Kind::first) co_return co_await take(claim, deadline);
  if (decision.kind == QueueDecision::Kind::behind) {
    if (claim->request().max_queue) claim->waiting_before = line->waiting_before(claim->node);
    line.reset();
    if (!decision.seal.empty()) {
      co_return co_await stand_behind_seal(claim, std::move(decision.seal), deadline);
    }
    if (claim->request().queue) {
      const auto born = births.find(decision.watch);
      const auto birth = born == births.end() ? 0 : born->second;
      co_return co_await stand_behind(claim, std::move(decision), birth, deadline);
    }
    ClaimAnswer busy;
    busy.status = ClaimStatus::busy;
    co_return co_await give_up_place(claim, std::move(busy), deadline);
  }
  // This claim's node was created before this listing was requested. Either a lagging server sent
  // the listing, or another client deleted the node.
  if (!usable(*claim)) co_return Answer();
  auto sent = settle_and_list(session_->client(), names_.root(), claim->directory);
  const auto settled = co_await reply_until(sent.first, deadline);
  const auto listing = co_await reply_until(sent.second, deadline);
  if (is_loss(settled.rc) || is_loss(listing.rc)) co_return Answer();
  const auto again = decision_of(claim->node, listing.children, births);
  if (again.kind == QueueDecision::Kind::missing) claim->leave_queue();
  co_return Answer();
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::stand_behind(NodeClaimPtr claim,
                                                                         QueueDecision decision,
                                                                         std::int64_t birth,
                                                                         TimePoint deadline) {
  if (!usable(*claim)) co_return Answer();
  const auto path = claim->directory + "/" + decision.watch;
  auto old = std::move(claim->before);
  watch_before(claim, path, decision.watch_decides);
  const auto ask = [&] {
    const Client::Burst burst(session_->client());
    be_sure_of_own_watch(claim);
    return session_->set_watch(path);
  };
  auto pending = ask();
  old.reset();
  const auto reply = co_await reply_until(std::move(pending), deadline);
  if (claim->place != Place::queued || is_loss(reply.rc)) co_return Answer();
  if (reply.rc == ZNONODE) co_return Answer();  // gone between listing and watch
  if (reply.rc != ZOK) {
    auto refused = failed(failure_of(reply.rc, "watching " + path));
    co_return co_await give_up_place(claim, std::move(refused), deadline);
  }
  // The node was created again since the listing. It may be behind this claim and wait for it
  // (found by the simulation).
  const bool is_another = birth != 0 && reply.stat.czxid != birth;
  if (is_another && has_name_of_several(path)) co_return Answer();
  ClaimAnswer waiting;
  waiting.status = ClaimStatus::waiting;
  if (claim->request().max_queue) waiting.waiting_before = claim->waiting_before;
  co_return waiting;
}

// Enough is half of what a new session has. After a silent link the base of the local deadline
// (rules/deadline.hpp) is as old as the silence, so that a grant would be lost soon. A new base
// counts a quarter of the timeout after its answer.
bool ZooKeeperBackend::has_patience() const noexcept {
  return session_->validity().until - env_.now() >= session_->timeout() / 3;
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::take(NodeClaimPtr claim,
                                                                 TimePoint deadline) {
  auto born = static_cast<std::uint64_t>(claim->czxid);
  const auto above = claim->request().min_token;
  auto known = token_offset_.known();
  if (!known) known = co_await token_offset_.value(deadline);
  auto& offset = *known;
  if (offset.rc == ZOK && born + offset.offset <= above) {
    offset.rc = co_await token_offset_.raise(above - born + 1, deadline);
    offset.offset = token_offset_.all().back();
  }
  if (is_loss(offset.rc)) co_return Answer();
  if (claim->place != Place::queued && claim->place != Place::granted) co_return Answer();
  const auto token = claim->token != 0 ? claim->token : born + offset.offset;
  if (offset.rc != ZOK || token >= kTokenEnd) {
    Failure failure{Error::token_too_low,
                    fmt::format("token {} of this ensemble is not above {}", token, above)};
    if (offset.rc == ZBADARGUMENTS) failure = token_offset_.unreadable();
    if (offset.rc == ZNOAUTH) failure = failure_of(offset.rc, names_.offset());
    auto answer = failed(std::move(failure));
    co_return co_await give_up_place(claim, std::move(answer), deadline);
  }
  // The session's last write may be old when the claim becomes first without a write. The event
  // that made it first is as old, and an operator may have broken its place since (found by the
  // simulation).
  if (!has_patience()) {
    if (!usable(*claim)) co_return Answer();
    auto sent = settle_and_list(session_->client(), names_.root(), claim->directory);
    const auto settled = co_await reply_until(sent.first, deadline);
    const auto listing = co_await reply_until(sent.second, deadline);
    if (is_loss(settled.rc) || is_loss(listing.rc)) co_return Answer();
    const auto& there = listing.children;
    const bool is_there = std::find(there.begin(), there.end(), claim->node) != there.end();
    if (!is_there && claim->place == Place::queued) claim->leave_queue();
    claim->own_changed = true;  // unless its data says otherwise
  }
  if (claim->place != Place::queued && claim->place != Place::granted) co_return Answer();
  if (!has_patience()) {
    co_await claim->signal.wait_until(std::min(deadline, env_.now() + session_->timeout() / 16));
    co_return Answer();
  }
  // Most likely an operator marked the node to break it. A pending request is sent before a
  // listing.
  if (claim->own_in_doubt) {
    claim->before_decides = false;
    co_return Answer();
  }
  if (claim->own_changed) {
    const int rc = co_await check_own_mark(claim, deadline);
    if (rc != ZOK || claim->own_in_doubt) co_return Answer();
    if (claim->place != Place::queued && claim->place != Place::granted) co_return Answer();
  }
  claim->place = Place::granted;
  claim->token = token;
  claim->was_granted = true;
  claim->wait_for_nobody();
  claim->waiting.reset();
  tell_next(*claim);
  if (!claim->own) watch_own_node_later(*claim);
  listen_for_others(claim);
  listen_for_askings(claim);
  ClaimAnswer granted;
  granted.status = ClaimStatus::granted;
  granted.token = token;
  granted.validity = session_->validity();
  claim->unwatched_until = granted.validity.until;
  co_return granted;
}

asio::awaitable<int> ZooKeeperBackend::check_own_mark(NodeClaimPtr claim, TimePoint deadline) {
  if (!usable(*claim)) co_return ZCONNECTIONLOSS;
  auto asked = session_->client().get(claim->path());
  const auto reply = co_await reply_until(std::move(asked), deadline);
  if (is_loss(reply.rc) || !usable(*claim)) co_return ZCONNECTIONLOSS;
  if (reply.rc == ZOK && may_be_broken(claim->path(), reply.text)) {
    ClaimAnswer unused;
    co_await give_up_place(claim, std::move(unused), deadline);
    co_return ZNONODE;
  }
  if (reply.rc == ZOK) claim->own_changed = false;
  co_return reply.rc;
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::give_up_place(NodeClaimPtr claim,
                                                                          ClaimAnswer answer,
                                                                          TimePoint deadline) {
  if (!usable(*claim)) co_return Answer();
  claim->own.reset();
  claim->wait_for_nobody();
  claim->removing = true;
  auto pending = session_->client().remove(claim->path());
  const auto reply = co_await reply_until(std::move(pending), deadline);
  // If the node could not be deleted, the core withdraws the claim.
  if (is_loss(reply.rc)) co_return no_answer(*claim, *session_);
  claim->leave_queue();
  claim->removing = false;
  co_return answer;
}

// A late copy of a create whose answer was lost: the claim has only one place.
void ZooKeeperBackend::remove_strays(const NodeClaim& claim, const Queue& line) {
  if (line.has_only(claim.node) || !usable(claim)) return;
  for (const auto& copy : line.copies_of(claim.request().owner.id)) {
    if (copy != claim.node) session_->client().remove(claim.directory + "/" + copy);
  }
}

}  // namespace dlock::zookeeper
