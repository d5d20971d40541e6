// SPDX-License-Identifier: Apache-2.0
//
// What a server does for its clients: sessions, requests in their order, watches.
#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/zookeeper/ensemble.hpp"

namespace dlock::simulation::ensemble {

using Kind = Operation::Kind;

bool Ensemble::accepts(int id) const { return server(id).up && server(id).role != Role::looking; }

std::pair<Ensemble::Server*, std::uint64_t> Ensemble::find(const Peer& peer) {
  for (auto& server : servers_) {
    for (auto& [number, connection] : server.connections) {
      if (connection.peer.get() == &peer) return {&server, number};
    }
  }
  return {nullptr, 0};
}

void Ensemble::connect(int id, std::shared_ptr<Peer> peer, std::int64_t session,
                       milliseconds timeout, std::int64_t seen) {
  auto& server = this->server(id);
  if (!accepts(id) || seen > server.tree.zxid()) return peer->on_closed();
  // The session's former connection to this server ends.
  if (session != 0) {
    std::vector<std::uint64_t> former;
    for (const auto& [number, connection] : server.connections) {
      if (connection.session == session) former.push_back(number);
    }
    for (const auto number : former) close(server, number);
  }
  const auto number = ++last_number_;
  auto& connection = server.connections[number];
  connection.peer = std::move(peer);
  connection.heard = world_.now();
  connection.timeout = std::clamp<milliseconds>(timeout, 2 * settings_.tick, 20 * settings_.tick);
  connection.session = session != 0 ? session : ++last_session_;
  if (session == 0) {
    Operation open;
    open.kind = Kind::open_session;
    open.session = connection.session;
    open.timeout = connection.timeout;
    return forward(server, std::move(open), {id, number, 0});
  }
  if (server.role == Role::leading)
    return establish(server, number, revalidate(server, session, id));
  const int to = server.leader;
  send(id, to, [this, id, to, number, session] {
    const bool valid = revalidate(this->server(to), session, id);
    send(to, id, [this, id, number, valid] { establish(this->server(id), number, valid); });
  });
}

bool Ensemble::revalidate(Server& leader, std::int64_t session, int at) {
  if (leader.expiries.find(session) == leader.expiries.end()) return false;
  touch(leader, session);
  leader.owners[session] = at;
  return true;
}

void Ensemble::establish(Server& server, std::uint64_t number, bool valid) {
  const auto found = server.connections.find(number);
  if (found == server.connections.end()) return;
  const auto peer = found->second.peer;
  if (valid) return peer->on_session(found->second.session, found->second.timeout);
  peer->on_session(0, {});
  close(server, number);
}

void Ensemble::receive(const Peer& peer, std::uint64_t request, Operation operation) {
  const auto [server, number] = find(peer);
  if (server == nullptr) return;
  on_request(operation);
  auto& connection = server->connections.at(number);
  connection.heard = world_.now();
  operation.session = connection.session;
  if (server->role == Role::leading) {
    touch(*server, connection.session);
  } else {
    server->touched.insert(connection.session);
  }
  const Origin origin{server->id, number, request};
  connection.pending.push_back({request, operation, {}});
  if (operation.is_write()) {
    forward(*server, std::move(operation), origin);
  } else if (operation.kind == Kind::sync) {
    if (server->role == Role::leading) {
      sync(*server, origin);
    } else {
      const int to = server->leader;
      send(server->id, to, [this, to, origin] { sync(this->server(to), origin); });
    }
  }
  drain(*server, number);
}

// Asks nobody: a leader that was deposed answers too, and its own clients without waiting for what
// is outstanding.
void Ensemble::sync(Server& leader, Origin origin) {
  if (origin.server == leader.id) return complete(origin, {});
  auto reply = [this, id = leader.id, origin] {
    const auto count = server(id).applied;
    send(id, origin.server, [this, origin, count] {
      apply_later(server(origin.server), count, [this, origin] { complete(origin, {}); });
    });
  };
  if (leader.outstanding.empty()) return reply();
  leader.outstanding.back()->syncs.emplace_back(std::move(reply));
}

void Ensemble::complete(const Origin& origin, Outcome outcome) {
  auto& server = this->server(origin.server);
  const auto found = server.connections.find(origin.connection);
  if (found == server.connections.end()) return;
  for (auto& pending : found->second.pending) {
    if (pending.request == origin.request && !pending.outcome) {
      pending.outcome = std::move(outcome);
      break;
    }
  }
  drain(server, origin.connection);
}

/// Replies go out in the order of the requests: a read waits for the write before it.
void Ensemble::drain(Server& server, std::uint64_t number) {
  while (true) {
    const auto found = server.connections.find(number);
    if (found == server.connections.end() || found->second.pending.empty()) return;
    auto& connection = found->second;
    auto& front = connection.pending.front();
    const bool waits = front.operation.is_write() || front.operation.kind == Kind::sync;
    if (waits && !front.outcome) return;
    // The client is to come back, here or elsewhere, and thereby say where its session is now.
    if (waits && front.outcome->code == Code::session_moved) return close(server, number);
    const auto peer = connection.peer;
    const auto pending = std::move(front);
    connection.pending.pop_front();
    auto outcome = waits ? *pending.outcome : answer(server, connection, pending.operation);
    if (outcome.zxid == 0) outcome.zxid = server.tree.zxid();
    peer->on_reply(pending.request, outcome);
    const bool armed = cut_after_ != 0 && connection.session == cut_after_;
    if (armed && pending.operation.is_write() && server.role == Role::following) {
      cut_after_ = 0;
      cut(server.id, cut_time_);
    }
  }
}

Outcome Ensemble::answer(Server& server, Connection& connection, const Operation& read) {
  auto outcome = server.tree.read(read);
  if (read.kind == Kind::get_and_watch && outcome.code == Code::ok) {
    connection.watches.insert(read.path);
  }
  if (read.kind == Kind::exists_and_watch) connection.watches.insert(read.path);
  if (read.kind == Kind::forget_watch) {
    outcome.code = connection.watches.erase(read.path) != 0 ? Code::ok : Code::no_watcher;
  }
  for (const auto& path : read.watches) {
    const auto* node = server.tree.find(path);
    if (node == nullptr || node->stat.changed > read.seen) {
      connection.peer->on_change({path, node == nullptr});
    } else {
      connection.watches.insert(path);
    }
  }
  for (const auto& path : read.absent) {
    if (server.tree.find(path) != nullptr) {
      connection.peer->on_change({path, false});
    } else {
      connection.watches.insert(path);
    }
  }
  return outcome;
}

void Ensemble::tell_watchers(Server& server, const std::vector<Change>& changes) {
  for (const auto& change : changes) {
    std::vector<std::uint64_t> told;
    for (auto& [number, connection] : server.connections) {
      if (connection.watches.erase(change.path) != 0) told.push_back(number);
    }
    // A connection may break over it.
    for (const auto number : told) {
      const auto connection = server.connections.find(number);
      if (connection != server.connections.end()) connection->second.peer->on_change(change);
    }
  }
}

void Ensemble::disconnect(const Peer& peer) {
  const auto [server, number] = find(peer);
  if (server != nullptr) server->connections.erase(number);
}

void Ensemble::close(Server& server, std::uint64_t number) {
  const auto found = server.connections.find(number);
  if (found == server.connections.end()) return;
  const auto peer = found->second.peer;
  server.connections.erase(found);
  peer->on_closed();
}

void Ensemble::close_silent(Server& server) {
  std::vector<std::uint64_t> silent;
  for (const auto& [number, connection] : server.connections) {
    if (connection.heard + connection.timeout < world_.now()) silent.push_back(number);
  }
  for (const auto number : silent) close(server, number);
}

// Sessions end at whole ticks.
TimePoint Ensemble::bucket(TimePoint when) const {
  const Duration tick = settings_.tick;
  return TimePoint((when.time_since_epoch() / tick + 1) * tick);
}

void Ensemble::touch(Server& leader, std::int64_t session) {
  const auto known = leader.expiries.find(session);
  const auto in_tree = leader.tree.sessions().find(session);
  if (known == leader.expiries.end() || in_tree == leader.tree.sessions().end()) return;
  known->second = std::max(known->second, bucket(world_.now() + in_tree->second.timeout));
}

int Ensemble::server_of(std::int64_t session) const {
  for (const auto& server : servers_) {
    for (const auto& [number, connection] : server.connections) {
      if (connection.session == session) return server.id;
    }
  }
  return -1;
}

std::int64_t Ensemble::session_of(const Peer& peer) const {
  for (const auto& server : servers_) {
    for (const auto& [number, connection] : server.connections) {
      if (connection.peer.get() == &peer) return connection.session;
    }
  }
  return 0;
}

std::multiset<std::string> Ensemble::watches() const {
  std::multiset<std::string> all;
  for (const auto& server : servers_) {
    for (const auto& [number, connection] : server.connections) {
      for (const auto& path : connection.watches) {
        all.insert(fmt::format("{}{}", server.id, path));
      }
    }
  }
  return all;
}

}  // namespace dlock::simulation::ensemble
