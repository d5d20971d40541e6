// SPDX-License-Identifier: Apache-2.0
//
// Who leads, what a leader decides by the clock, and what goes wrong between servers.
#include <algorithm>

#include "tests/simulation/zookeeper/ensemble.hpp"

namespace dlock::simulation::ensemble {

using Kind = Operation::Kind;

int Ensemble::leader() const {
  int newest = -1;
  for (const auto& one : servers_) {
    if (!is_leading(one.id)) continue;
    if (newest < 0 || one.epoch > server(newest).epoch) newest = one.id;
  }
  return newest;
}

bool Ensemble::is_leading(int id) const {
  return server(id).up && server(id).role == Role::leading;
}

/// Serves nobody until there is a leader again.
void Ensemble::look(Server& server) {
  ++server.life;
  const bool led = server.role == Role::leading;
  const int former = server.leader;
  server.role = Role::looking;
  server.leader = -1;
  server.association = 0;
  server.followers.clear();
  server.outstanding.clear();
  server.next_sequence.clear();
  server.expiries.clear();
  server.owners.clear();
  server.touched.clear();
  server.applies_until = {};
  while (!server.connections.empty()) close(server, server.connections.begin()->first);
  if (led) {
    world_.trace("server {}: leads no more", server.id);
    for (auto& other : servers_) {
      const bool hears = other.leader == server.id && !link(other.id, server.id).is_cut;
      if (other.id != server.id && hears) look(other);
    }
  } else if (former >= 0 && !link(former, server.id).is_cut) {
    this->server(former).followers.erase(server.id);
  }
  server.ready_at = world_.now() + world_.between(milliseconds(150), 2 * settings_.tick);
  if (server.up) after(server, milliseconds(50), [this, &server] { try_to_find_leader(server); });
}

void Ensemble::try_to_find_leader(Server& server) {
  Server* best = nullptr;
  std::vector<Server*> group{&server};
  for (auto& other : servers_) {
    if (other.id == server.id || !other.up || link(server.id, other.id).is_cut) continue;
    if (other.role == Role::leading && (best == nullptr || other.epoch > best->epoch)) {
      best = &other;
    }
    if (other.role == Role::looking && other.ready_at <= world_.now()) group.push_back(&other);
  }
  if (best != nullptr) return follow(server, *best);
  if (server.ready_at <= world_.now() && group.size() * 2 > kServers) {
    auto* chosen = *std::max_element(group.begin(), group.end(),
                                     [](Server* a, Server* b) { return a->logged < b->logged; });
    lead(*chosen);
    for (auto* other : group) {
      if (other != chosen) follow(*other, *chosen);
    }
    return;
  }
  after(server, milliseconds(50), [this, &server] { try_to_find_leader(server); });
}

// What the chosen one has on disk beyond the common log becomes part of it. Every session gets its
// full time afresh.
void Ensemble::lead(Server& server) {
  ++server.life;
  for (const auto& proposal : server.accepted) {
    if (log_.empty() || proposal->zxid > log_.back()->zxid) append(proposal);
  }
  server.accepted.clear();
  for (const auto& other : servers_) server.epoch = std::max(server.epoch, other.epoch);
  ++server.epoch;
  server.last_zxid = server.epoch << 32U;
  server.role = Role::leading;
  apply(server, log_.size());
  for (const auto& [session, about] : server.tree.sessions()) {
    server.expiries[session] = bucket(world_.now() + about.timeout);
  }
  world_.trace("server {}: leads, epoch {}", server.id, server.epoch);
}

void Ensemble::follow(Server& server, Server& leader) {
  ++server.life;
  server.role = Role::following;
  server.leader = leader.id;
  server.association = ++last_number_;
  server.epoch = leader.epoch;
  server.heard = world_.now();
  server.accepted.clear();
  server.logged = log_.empty() ? 0 : log_.back()->zxid;
  leader.followers[server.id] = {server.association, world_.now()};
  apply(server, log_.size());
  for (const auto& proposal : leader.outstanding) {
    send(leader.id, server.id, [this, &server, proposal] { log_at(server, proposal); });
  }
  world_.trace("server {}: follows {}", server.id, leader.id);
}

void Ensemble::beat(int id) {
  auto& server = this->server(id);
  const auto patience = settings_.sync_limit * settings_.tick;
  if (server.up) close_silent(server);
  if (server.role == Role::leading) {
    const auto followers =
        std::count_if(server.followers.begin(), server.followers.end(),
                      [&](const auto& one) { return one.second.heard + patience >= world_.now(); });
    if ((followers + 1) * 2 > kServers) {
      ping(server);
    } else {
      look(server);
    }
  } else if (server.role == Role::following && server.heard + patience < world_.now()) {
    look(server);
  }
  after(settings_.tick / 2, [this, id] { beat(id); });
}

/// Brings back which sessions the followers have heard of.
void Ensemble::ping(Server& leader) {
  for (const auto& [id, known] : leader.followers) {
    send(leader.id, id, [this, from = id, to = leader.id] {
      auto& follower = server(from);
      follower.heard = world_.now();
      auto touched = std::exchange(follower.touched, {});
      send(from, to, [this, from, to, touched = std::move(touched)] {
        auto& told = server(to);
        told.followers[from].heard = world_.now();
        for (const auto session : touched) touch(told, session);
      });
    });
  }
}

void Ensemble::expire_in_turn() {
  for (auto& server : servers_) {
    if (is_leading(server.id)) expire(server);
  }
  after(bucket(world_.now()) - world_.now(), [this] { expire_in_turn(); });
}

void Ensemble::expire(Server& leader) {
  std::vector<std::int64_t> over;
  for (const auto& [session, when] : leader.expiries) {
    if (when <= world_.now()) over.push_back(session);
  }
  for (const auto session : over) {
    world_.trace("server {}: session 0x{:x} is over", leader.id, session);
    leader.expiries.erase(session);
    ended_.insert(session);
    Operation end;
    end.kind = Kind::close_session;
    end.session = session;
    propose(leader, std::move(end), {}, {});
  }
}

void Ensemble::reap_in_turn() {
  if (const int id = leader(); id >= 0) {
    for (const auto& [path, node] : committed_.nodes()) {
      if (!node.container || !node.had_children || node.children != 0) continue;
      Operation reap;
      reap.kind = Kind::reap;
      reap.path = path;
      propose(server(id), std::move(reap), {}, {});
    }
  }
  after(settings_.reap_every, [this] { reap_in_turn(); });
}

void Ensemble::kill(int id, Duration down) {
  auto& killed = server(id);
  if (!killed.up) return;
  world_.trace("server {}: killed", id);
  killed.up = false;
  look(killed);
  after(down, [this, id] {
    auto& back = server(id);
    if (back.up) return;
    back.up = true;
    look(back);
  });
}

void Ensemble::cut(int id, Duration time) {
  world_.trace("server {}: cut off, {}", id, is_leading(id) ? "leading" : "following");
  for (const auto& other : servers_) {
    if (other.id != id) link(id, other.id).is_cut = true;
  }
  after(time, [this, id] { mend(id); });
}

void Ensemble::leave_leader(int id) {
  for (auto& other : servers_) {
    if (other.role == Role::following && other.leader == id) look(other);
  }
}

void Ensemble::cut_after_write(std::int64_t session, Duration time) {
  cut_after_ = session;
  cut_time_ = time;
}

void Ensemble::slow_links(Duration by, Duration time) {
  slowness_ = by;
  after(time, [this] { slowness_ = {}; });
}

// What was held back arrives now, if both ends still want it.
void Ensemble::mend(int id) {
  for (const auto& other : servers_) {
    if (other.id == id) continue;
    auto& between = link(id, other.id);
    between.is_cut = false;
    const auto held = std::exchange(between.held, {});
    for (const bool up : {true, false}) {
      const int from = (id < other.id) == up ? id : other.id;
      const int to = from == id ? other.id : id;
      for (int i = 0; i < held.at(up ? 0 : 1); ++i) arrive_later(from, to);
    }
  }
}

void Ensemble::heal() {
  cut_after_ = 0;
  slowness_ = {};
  for (auto& server : servers_) {
    mend(server.id);
    if (server.up) continue;
    server.up = true;
    look(server);
  }
}

bool Ensemble::is_whole() const {
  int followers = 0;
  for (const auto& server : servers_) {
    if (server.role == Role::following && associated(server.id, server.leader)) ++followers;
  }
  const bool links =
      std::none_of(links_.begin(), links_.end(), [](const Link& one) { return one.is_cut; });
  return links && leader() >= 0 && followers == kServers - 1 && slowness_ == Duration{};
}

}  // namespace dlock::simulation::ensemble
