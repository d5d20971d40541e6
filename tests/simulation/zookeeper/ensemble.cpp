// SPDX-License-Identifier: Apache-2.0
//
// The log: proposals, majorities, and what each server makes of them.
#include "tests/simulation/zookeeper/ensemble.hpp"

#include <limits>

namespace dlock::simulation::ensemble {

using Kind = Operation::Kind;

Ensemble::Ensemble(World& world, Settings settings) : world_(world), settings_(settings) {
  for (int id = 0; id < kServers; ++id) {
    server(id).id = id;
    after(world_.between({}, settings_.tick / 2), [this, id] { beat(id); });
  }
  auto& first = server(static_cast<int>(world_.below(kServers)));
  lead(first);
  for (auto& other : servers_) {
    if (other.id != first.id) follow(other, first);
  }
  expire_in_turn();
  after(settings_.reap_every, [this] { reap_in_turn(); });
}

Ensemble::Link& Ensemble::link(int a, int b) { return links_.at(at(kServers - a - b)); }

void Ensemble::after(Duration time, Job job) {
  world_.after(time, [alive = std::weak_ptr(alive_), job = std::move(job)]() mutable {
    if (!alive.expired()) job();
  });
}

void Ensemble::after(Server& server, Duration time, Job job) {
  after(time, [&server, life = server.life, job = std::move(job)]() mutable {
    if (server.life == life) job();
  });
}

bool Ensemble::associated(int a, int b) const {
  const auto follows = [](const Server& follower, const Server& leader) {
    if (follower.role != Role::following || follower.leader != leader.id) return false;
    const auto known = leader.followers.find(follower.id);
    return known != leader.followers.end() && known->second.association == follower.association;
  };
  return follows(server(a), server(b)) || follows(server(b), server(a));
}

void Ensemble::send(int from, int to, Job job) {
  if (!associated(from, to)) return;
  const auto association = std::max(server(from).association, server(to).association);
  auto guarded = [this, from, to, association, job = std::move(job)]() mutable {
    const auto now = std::max(server(from).association, server(to).association);
    if (associated(from, to) && now == association) job();
  };
  deliver(from, to, std::move(guarded));
}

void Ensemble::deliver(int from, int to, Job job) {
  link(from, to).queue.at(from < to ? 0 : 1).push_back(std::move(job));
  arrive_later(from, to);
}

/// What is the next by then.
void Ensemble::arrive_later(int from, int to) {
  auto& last = link(from, to).last.at(from < to ? 0 : 1);
  const auto travels = slowness_ + world_.between(microseconds(40), microseconds(300));
  last = std::max(last, world_.now() + travels);
  after(last - world_.now(), [this, from, to] {
    auto& between = link(from, to);
    const std::size_t direction = from < to ? 0 : 1;
    if (between.is_cut) {
      ++between.held.at(direction);
      return;
    }
    auto& queue = between.queue.at(direction);
    auto next = std::move(queue.front());
    queue.pop_front();
    next();
  });
}

bool Ensemble::submit(Operation write, Job committed) {
  const int id = leader();
  if (id < 0) return false;
  propose(server(id), std::move(write), {}, std::move(committed));
  return true;
}

void Ensemble::forward(Server& from, Operation write, Origin origin) {
  if (from.role == Role::leading) return propose(from, std::move(write), origin, {});
  const int to = from.leader;
  send(from.id, to, [this, to, write = std::move(write), origin]() mutable {
    propose(server(to), std::move(write), origin, {});
  });
}

void Ensemble::propose(Server& leader, Operation write, Origin origin, Job committed) {
  // What a server held back while its client went on to another one comes too late.
  if (origin.server >= 0) {
    const auto owner = leader.owners.emplace(write.session, origin.server).first;
    write.moved = owner->second != origin.server;
  }
  number(leader, write);
  const auto proposal = std::make_shared<Proposal>();
  proposal->write = std::move(write);
  proposal->origin = origin;
  proposal->committed = std::move(committed);
  proposal->zxid = ++leader.last_zxid;
  proposal->time_ms =
      std::chrono::duration_cast<milliseconds>(world_.now().time_since_epoch()).count();
  leader.outstanding.push_back(proposal);
  log_at(leader, proposal);
  for (const auto& [id, follower] : leader.followers) {
    send(leader.id, id, [this, to = id, proposal] { log_at(server(to), proposal); });
  }
}

// The counter's numbers are given out before the nodes before are agreed on; once they are, it goes
// on from where the parent stands, which has an end that cannot be passed.
void Ensemble::number(Server& leader, Operation& write) {
  if (write.kind != Kind::create) return;
  auto& next = leader.next_sequence;
  if (write.mode == Operation::Mode::container) {
    constexpr auto kEnd = std::numeric_limits<std::int32_t>::max();
    write.sequence = 0;
    if (world_.chance(settings_.near_end)) {
      write.sequence = kEnd - static_cast<std::int32_t>(world_.below(8));
    }
    if (leader.tree.find(write.path) == nullptr) next.emplace(write.path, write.sequence);
  }
  if (write.mode != Operation::Mode::ephemeral_sequential) return;
  const auto parent = parent_of(write.path);
  const auto* node = leader.tree.find(parent);
  const auto known = next.find(parent);
  if (known != next.end()) {
    write.sequence = known->second;
  } else {
    write.sequence = node == nullptr ? 0 : node->next_sequence;
  }
  next[parent] = static_cast<std::int32_t>(static_cast<std::uint32_t>(write.sequence) + 1U);
}

/// To the server's disk; the leader is told.
void Ensemble::log_at(Server& logger, const ProposalPtr& proposal) {
  logger.writes_until = std::max(logger.writes_until, world_.now()) +
                        world_.between(microseconds(30), microseconds(300));
  after(logger, logger.writes_until - world_.now(), [this, &logger, proposal] {
    if (proposal->zxid <= logger.logged) return;
    logger.logged = proposal->zxid;
    logger.accepted.push_back(proposal);
    if (logger.role == Role::leading) {
      proposal->logged_by.insert(logger.id);
      commit_ready(logger);
      return;
    }
    const int to = logger.leader;
    send(logger.id, to, [this, to, from = logger.id, proposal] {
      proposal->logged_by.insert(from);
      commit_ready(server(to));
    });
  });
}

void Ensemble::commit_ready(Server& leader) {
  if (leader.role != Role::leading) return;
  while (!leader.outstanding.empty() &&
         leader.outstanding.front()->logged_by.size() * 2 > kServers) {
    const auto proposal = leader.outstanding.front();
    leader.outstanding.pop_front();
    append(proposal);
    const auto count = log_.size();
    for (const auto& [id, follower] : leader.followers) {
      send(leader.id, id, [this, to = id, count] { apply_later(server(to), count, {}); });
    }
    apply(leader, count);
    if (leader.outstanding.empty()) leader.next_sequence.clear();
    for (auto& answer_sync : std::exchange(proposal->syncs, {})) answer_sync();
  }
}

void Ensemble::append(const ProposalPtr& proposal) {
  log_.push_back(proposal);
  std::vector<Change> changes;
  committed_.apply(proposal->write, proposal->zxid, proposal->time_ms, changes);
  if (proposal->write.kind == Kind::create) on_created(proposal->write.path);
  if (auto job = std::exchange(proposal->committed, {})) job();
}

/// Followers lag: mostly a little, now and then much.
void Ensemble::apply_later(Server& follower, std::size_t count, Job then) {
  auto lag = world_.between(microseconds(10), microseconds(150));
  if (world_.chance(0.03)) lag = world_.between(milliseconds(1), milliseconds(60));
  if (world_.chance(0.003)) lag = world_.between(milliseconds(60), milliseconds(400));
  follower.applies_until = std::max(follower.applies_until, world_.now() + lag);
  after(follower, follower.applies_until - world_.now(),
        [this, &follower, count, then = std::move(then)]() mutable {
          apply(follower, count);
          if (then) then();
        });
}

void Ensemble::apply(Server& server, std::size_t count) {
  for (; server.applied < count; ++server.applied) {
    const auto proposal = log_[server.applied];
    std::vector<Change> changes;
    auto outcome = server.tree.apply(proposal->write, proposal->zxid, proposal->time_ms, changes);
    std::erase_if(server.accepted,
                  [&](const ProposalPtr& one) { return one->zxid <= proposal->zxid; });
    server.logged = std::max(server.logged, proposal->zxid);
    tell_watchers(server, changes);
    if (proposal->write.kind == Kind::open_session) on_session_opened(server, *proposal);
    if (proposal->origin.server == server.id) complete(proposal->origin, std::move(outcome));
    if (proposal->write.kind != Kind::close_session) continue;
    server.expiries.erase(proposal->write.session);
    std::vector<std::uint64_t> over;
    for (const auto& [number, connection] : server.connections) {
      if (connection.session == proposal->write.session) over.push_back(number);
    }
    for (const auto number : over) close(server, number);
  }
}

void Ensemble::on_session_opened(Server& server, const Proposal& proposal) {
  const auto& write = proposal.write;
  if (server.role == Role::leading)
    server.expiries[write.session] = bucket(world_.now() + write.timeout);
  if (proposal.origin.server != server.id) return;
  const auto found = server.connections.find(proposal.origin.connection);
  if (found == server.connections.end()) return;
  establish(server, found->first, true);
}

}  // namespace dlock::simulation::ensemble
