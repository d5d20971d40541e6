// SPDX-License-Identifier: Apache-2.0
//
// Permits of a semaphore, with Curator's recipe. Only the holder of the lock beside the leases may
// add leases. It counts them and waits until enough permits are free. Each lease is created on the
// condition that this claim still has the lock, so a late request adds nothing.
#include <fmt/format.h>

#include <algorithm>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/error.hpp"
#include "backends/zookeeper/rules/metadata.hpp"
#include "backends/zookeeper/rules/permits.hpp"
#include "dlock/sequencer.hpp"
#include "dlock/spi/error.hpp"

namespace dlock::zookeeper {
namespace {

using std::chrono::milliseconds;
using Place = NodeClaim::Place;

ClaimAnswer refused_permits(Failure failure) {
  ClaimAnswer answer;
  answer.status = ClaimStatus::failed;
  answer.failure = std::move(failure);
  return answer;
}

ClaimAnswer no_word(const NodeClaim& claim, const Session& session) {
  ClaimAnswer answer;
  const bool nothing = claim.place == Place::nowhere && claim.guard->place == Place::nowhere;
  answer.status = nothing ? ClaimStatus::unavailable : ClaimStatus::unknown;
  answer.failure.error = session.connected() ? Error::no_answer : Error::not_connected;
  answer.failure.text = "servers " + session.addresses();
  return answer;
}

std::string limit_path(const NodeClaim& claim) {
  const auto semaphore = claim.directory.substr(0, claim.directory.rfind('/') + 1);
  return semaphore + std::string(kLimitNode);
}

Failure refusal(const ClaimRequest& request, std::uint32_t limit) {
  if (request.limit != 0 && request.limit != limit) {
    return wrong_limit(request.name, request.limit, limit);
  }
  if (request.permits > limit) return too_many_permits(request.name, request.permits, limit);
  return {};
}

}  // namespace

asio::awaitable<ClaimAnswer> ZooKeeperBackend::claim_permits(NodeClaimPtr claim,
                                                             TimePoint deadline) {
  const auto guard = claim->guard;
  claim->woken = claim->interrupted = false;
  while (!closed_) {
    bool ready = session_->is_ready(deadline);
    if (!ready) ready = co_await session_->ready(deadline);
    if (!ready) break;
    forget_old_session(*claim);
    forget_old_session(*guard);
    Answer answer;
    if (guard->place == Place::granted) {
      answer = co_await count_permits(claim, deadline);
    } else if (claim->place != Place::nowhere) {
      answer = co_await find_leases(claim, deadline);
    } else {
      auto stands = co_await this->claim(guard, deadline);
      if (stands.status == ClaimStatus::waiting) answer = co_await check_limit(claim, deadline);
      if (answer) co_return std::move(*answer);
      if (stands.status != ClaimStatus::granted) co_return stands;
    }
    if (answer) co_return std::move(*answer);
    if (env_.now() >= deadline) break;
  }
  co_return no_word(*claim, *session_);
}

// A waiter behind others reads the limit once and after each change.
asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::check_limit(NodeClaimPtr claim,
                                                                        TimePoint deadline) {
  if (claim->limit_agrees) co_return Answer();
  const auto path = limit_path(*claim);
  if (!claim->limit_watch) {
    const std::weak_ptr<NodeClaim> weak = claim;
    claim->limit_watch = session_->watch_always(path, [weak](WatchEvent event) {
      const auto waiter = weak.lock();
      if (!waiter || is_set(event)) return;
      waiter->limit_agrees = false;
      waiter->guard->wake();
    });
  }
  claim->limit_agrees = true;
  const auto ask = [&] {
    const Client::Burst burst(session_->client());
    if (!session_->watching(path)) session_->set_watch(path);
    return session_->client().get(path);
  };
  auto asked = ask();
  const auto found = co_await reply_until(std::move(asked), deadline);
  const auto stored = found.rc == ZOK ? read_limit(found.text) : std::nullopt;
  if (is_loss(found.rc)) claim->limit_agrees = false;
  if (!stored || !usable(*claim)) co_return Answer();  // the first in line reports what is wrong
  auto why = refusal(claim->request(), *stored);
  if (!why.error) co_return Answer();
  co_return co_await leave_line(claim, refused_permits(std::move(why)), deadline);
}

// With the guard.
asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::count_permits(NodeClaimPtr claim,
                                                                          TimePoint deadline) {
  struct Asked {
    PendingReply limit;
    PendingReply settled;
    PendingReply leases;
  };
  const auto ask = [&] {
    auto& client = session_->client();
    const Client::Burst burst(client);
    auto limit = client.get(limit_path(*claim));
    auto settled = client.prove(names_.root());
    if (claim->counts) counting_[claim->directory] = claim;
    return Asked{std::move(limit), std::move(settled),
                 claim->counts ? client.children_and_watch(claim->directory)
                               : client.children(claim->directory)};
  };
  auto asked = ask();
  auto found = co_await reply_until(std::move(asked.limit), deadline);
  const auto settled = co_await reply_until(std::move(asked.settled), deadline);
  const auto leases = co_await reply_until(std::move(asked.leases), deadline);
  if (is_loss(found.rc) || is_loss(settled.rc) || is_loss(leases.rc)) co_return Answer();
  if (!usable(*claim) || claim->guard->place != Place::granted) co_return Answer();
  if (leases.rc != ZOK && leases.rc != ZNONODE) {
    auto refused = refused_permits(failure_of(leases.rc, "listing " + claim->directory));
    co_return co_await leave_line(claim, std::move(refused), deadline);
  }
  std::uint32_t limit = 0;
  auto answer = co_await agree_on_limit(claim, std::move(found), limit, deadline);
  if (answer || limit == 0) co_return answer;
  const auto mine = copies_of(claim->request().owner.id, leases.children);
  const auto wanted = claim->request().permits;
  if (mine.size() == wanted) co_return co_await identify(claim, mine, deadline);
  const auto others = leases.children.size() - mine.size();
  if (others + wanted <= limit && mine.size() < wanted) {
    co_return co_await make_leases(claim, wanted - mine.size(), deadline);
  }
  if (!mine.empty()) {  // other leases were added meanwhile, which Curator's recipe excludes
    co_await remove_leases(claim, true, deadline);
    co_return Answer();
  }
  if (!claim->request().queue) {
    ClaimAnswer busy;
    busy.status = ClaimStatus::busy;
    co_return co_await leave_line(claim, std::move(busy), deadline);
  }
  // Counts once more, with a watch that reports fewer leases.
  if (!std::exchange(claim->counts, true)) co_return Answer();
  ClaimAnswer waiting;
  waiting.status = ClaimStatus::waiting;
  co_return waiting;
}

// No answer, and 0: it has to be read again.
asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::agree_on_limit(NodeClaimPtr claim,
                                                                           Reply found,
                                                                           std::uint32_t& limit,
                                                                           TimePoint deadline) {
  const auto& request = claim->request();
  const auto path = limit_path(*claim);
  if (found.rc == ZNONODE && request.limit == 0) {
    auto refused = refused_permits(unknown_semaphore(request.name));
    co_return co_await leave_line(claim, std::move(refused), deadline);
  }
  if (found.rc == ZNONODE) {
    auto pending =
        session_->client().create(path, write_limit(request.limit), Client::Mode::persistent);
    const auto made = co_await reply_until(std::move(pending), deadline);
    if (is_loss(made.rc) || made.rc == ZOK || made.rc == ZNODEEXISTS) co_return Answer();
    auto refused = refused_permits(failure_of(made.rc, "creating " + path));
    co_return co_await leave_line(claim, std::move(refused), deadline);
  }
  Failure why;
  const auto stored = found.rc == ZOK ? read_limit(found.text) : std::nullopt;
  if (found.rc != ZOK) {
    why = failure_of(found.rc, "reading " + path);
  } else if (auto newer = newer_limit(path, found.text); !newer.empty()) {
    why = Failure{Error::newer_format, std::move(newer)};
  } else if (!stored) {
    why = Failure{Error::unexpected, "the node " + path + " has no number of permits"};
  } else {
    why = refusal(request, *stored);
  }
  if (why.error) {
    co_return co_await leave_line(claim, refused_permits(std::move(why)), deadline);
  }
  limit = *stored;
  co_return Answer();
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::make_leases(NodeClaimPtr claim,
                                                                        std::size_t count,
                                                                        TimePoint deadline) {
  const auto& request = claim->request();
  const bool all = count == request.permits;
  Metadata metadata{request.owner, std::chrono::duration_cast<milliseconds>(session_->timeout())};
  metadata.permits = request.permits;
  metadata.breakable = true;
  const auto data = write_metadata(metadata);
  std::vector<PendingReply> pending;
  const auto send = [&] {
    const Client::Burst burst(session_->client());
    for (std::size_t i = 0; i < count; ++i) {
      pending.push_back(session_->client().change_if(
          {claim->guard->path(), 0},
          {Client::Change::Kind::create, claim->path_of(lease_prefix(request.owner.id)), data,
           Client::Mode::ephemeral_sequential}));
    }
  };
  send();
  claim->place = Place::doubtful;
  std::vector<std::string> nodes;
  std::int64_t first = 0;
  int rc = ZOK;
  for (auto& one : pending) {
    const auto made = co_await reply_until(std::move(one), deadline);
    if (made.rc != ZOK) {
      if (!is_loss(rc)) rc = made.rc;
      continue;
    }
    nodes.push_back(made.text.substr(made.text.rfind('/') + 1));
    if (first == 0) first = made.stat.czxid;
  }
  if (is_loss(rc) || !usable(*claim)) co_return Answer();
  if (rc == ZOK && all) co_return co_await take_permits(claim, std::move(nodes), first, deadline);
  if (rc == ZNONODE) {
    auto parent = session_->client().create(claim->directory, {}, Client::Mode::container);
    rc = (co_await reply_until(std::move(parent), deadline)).rc;
    if (rc == ZNODEEXISTS) rc = ZOK;
  }
  // The guard was taken away: from the end of the line once more.
  if (rc == kCheckFailed) co_await release(claim->guard, true, deadline);
  if (rc == ZOK || rc == kCheckFailed || is_loss(rc)) co_return Answer();
  auto refused = refused_permits(failure_of(rc, "creating a node below " + claim->directory));
  co_return co_await leave_line(claim, std::move(refused), deadline);
}

// Checks which leases the claim has without the guard: either all of them count, or none may
// remain.
asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::find_leases(NodeClaimPtr claim,
                                                                        TimePoint deadline) {
  const auto listing = co_await fresh_children(claim->directory, true, deadline);
  if (is_loss(listing.rc) || !usable(*claim)) co_return Answer();
  const auto mine = copies_of(claim->request().owner.id, listing.children);
  if (mine.size() == claim->request().permits) {
    co_return co_await identify(claim, mine, deadline);
  }
  const auto removed = co_await remove_leases(claim, true, deadline);
  if (!is_loss(removed)) claim->leave_queue();
  co_return Answer();
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::identify(NodeClaimPtr claim,
                                                                     std::vector<std::string> nodes,
                                                                     TimePoint deadline) {
  std::vector<PendingReply> pending;
  const auto session_id = session_->client().session_id();
  const auto send = [&] {
    const Client::Burst burst(session_->client());
    for (const auto& node : nodes) {
      pending.push_back(session_->client().exists(claim->path_of(node)));
    }
  };
  send();
  std::int64_t first = 0;
  bool all = true;
  bool is_abandoned = false;
  for (auto& one : pending) {
    const auto reply = co_await reply_until(std::move(one), deadline);
    // An operator has marked it: no other client writes into a lease.
    const bool is_marked = reply.rc == ZOK && reply.stat.version > 0;
    const bool is_ours = reply.stat.ephemeral_owner == session_id && !is_marked;
    all = all && reply.rc == ZOK && is_ours;
    is_abandoned = is_abandoned || (reply.rc == ZOK && !is_ours);
    if (first == 0 || reply.stat.czxid < first) first = reply.stat.czxid;
  }
  if (!usable(*claim)) co_return Answer();
  // Else each round finds the leases of an abandoned session again until that session expires.
  if (is_abandoned) co_await remove_leases(claim, true, deadline);
  if (!all) co_return Answer();
  co_return co_await take_permits(claim, std::move(nodes), first, deadline);
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::take_permits(
    NodeClaimPtr claim, std::vector<std::string> nodes, std::int64_t czxid, TimePoint deadline) {
  auto known = token_offset_.known();
  if (!known) known = co_await token_offset_.value(deadline);
  if (is_loss(known->rc) || !usable(*claim)) co_return Answer();
  const auto token = static_cast<std::uint64_t>(czxid) + known->offset;
  if (known->rc != ZOK || token >= kTokenEnd) {
    Failure why{Error::token_too_low, "no token is left"};
    if (known->rc == ZBADARGUMENTS) why = token_offset_.unreadable();
    auto refused = refused_permits(std::move(why));
    co_return co_await leave_line(claim, std::move(refused), deadline);
  }
  if (!has_patience()) {
    auto proving = session_->client().prove(names_.root());
    const auto proven = co_await reply_until(std::move(proving), deadline);
    if (proven.rc == ZOK && !has_patience()) {
      co_await claim->signal.wait_until(std::min(deadline, env_.now() + session_->timeout() / 16));
    }
    co_return Answer();
  }
  claim->place = Place::granted;
  claim->removing = false;
  stop_counting(*claim);
  claim->leases = std::move(nodes);
  claim->node = claim->leases.front();
  claim->czxid = czxid;
  claim->token = token;
  claim->was_granted = true;
  watch_own_node_later(*claim);
  // If its answer is lost, the next renewal does it.
  if (claim->guard->place != Place::nowhere) co_await release(claim->guard, false, deadline);
  if (claim->place != Place::granted) co_return Answer();
  ClaimAnswer granted;
  granted.status = ClaimStatus::granted;
  granted.token = token;
  granted.validity = session_->validity();
  claim->unwatched_until = granted.validity.until;
  co_return granted;
}

asio::awaitable<ZooKeeperBackend::Answer> ZooKeeperBackend::leave_line(NodeClaimPtr claim,
                                                                       ClaimAnswer answer,
                                                                       TimePoint deadline) {
  const auto gone = co_await release_permits(claim, false, deadline);
  // If leases could not be deleted, the core withdraws the claim.
  if (gone.status != ReleaseStatus::released && gone.status != ReleaseStatus::not_holder) {
    co_return no_word(*claim, *session_);
  }
  co_return answer;
}

// The entry of the directory may be another claim's, which acquired the guard since.
void ZooKeeperBackend::stop_counting(NodeClaim& claim) noexcept {
  claim.counts = claim.limit_agrees = false;
  claim.limit_watch.reset();
  const auto entry = counting_.find(claim.directory);
  if (entry != counting_.end() && entry->second.lock().get() == &claim) counting_.erase(entry);
}

// The guard first: after that nothing of it arrives any more.
asio::awaitable<ReleaseAnswer> ZooKeeperBackend::release_permits(NodeClaimPtr claim, bool search,
                                                                 TimePoint deadline) {
  ReleaseAnswer answer;
  const bool may_have_any = claim->place != Place::nowhere || claim->was_granted || search;
  const auto gone =
      claim->was_granted && !claim->removing ? ReleaseStatus::not_holder : ReleaseStatus::released;
  stop_counting(*claim);
  const auto place = co_await release(claim->guard, search, deadline);
  if (place.status != ReleaseStatus::released && place.status != ReleaseStatus::not_holder) {
    co_return place;
  }
  answer.status = ReleaseStatus::released;
  if (!may_have_any) co_return answer;
  while (!closed_) {
    if (claim->session != session_->number()) {
      claim->leave_queue();
      answer.status = gone;
      co_return answer;
    }
    bool ready = session_->is_ready(deadline);
    if (!ready) ready = co_await session_->ready(deadline);
    if (!ready) break;
    if (!usable(*claim)) continue;
    const auto rc =
        co_await remove_leases(claim, search || claim->place != Place::granted, deadline);
    if (rc == ZOK || rc == ZNONODE) {
      claim->leave_queue();
      answer.status = rc == ZOK ? ReleaseStatus::released : gone;
      co_return answer;
    }
    if (!is_loss(rc)) {
      answer.status = rc == ZNOAUTH ? ReleaseStatus::refused : ReleaseStatus::unavailable;
      answer.failure = failure_of(rc, "deleting nodes below " + claim->directory);
      claim->removing = false;
      tell_refused(*claim, answer.failure);
      co_return answer;
    }
    if (env_.now() >= deadline) break;
  }
  if (!closed_) {  // else closing the session frees them
    answer.status = claim->removing ? ReleaseStatus::unknown : ReleaseStatus::unavailable;
    answer.failure.error = session_->connected() ? Error::no_answer : Error::not_connected;
  }
  co_return answer;
}

asio::awaitable<int> ZooKeeperBackend::remove_leases(NodeClaimPtr claim, bool search,
                                                     TimePoint deadline) {
  auto nodes = claim->leases;
  if (search) {
    const auto listing = co_await fresh_children(claim->directory, true, deadline);
    if (listing.rc == ZNONODE) co_return ZNONODE;
    if (listing.rc != ZOK) co_return listing.rc;
    nodes = copies_of(claim->request().owner.id, listing.children);
  }
  if (!usable(*claim)) co_return ZCONNECTIONLOSS;
  claim->own.reset();
  claim->other_leases.clear();
  if (!nodes.empty()) claim->removing = true;
  std::vector<PendingReply> pending;
  const auto send = [&] {
    const Client::Burst burst(session_->client());
    for (const auto& node : nodes) {
      pending.push_back(session_->client().remove(claim->path_of(node)));
    }
  };
  send();
  int rc = ZNONODE;
  for (auto& one : pending) {
    const auto reply = co_await reply_until(std::move(one), deadline);
    const bool worse = is_loss(reply.rc) || (reply.rc != ZOK && reply.rc != ZNONODE);
    if (worse ? !is_loss(rc) : rc == ZNONODE) rc = reply.rc;
  }
  co_return rc;
}

}  // namespace dlock::zookeeper
