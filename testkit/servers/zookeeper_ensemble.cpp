// SPDX-License-Identifier: Apache-2.0
//
// How the links are brought under our hand: each server's zoo.cfg has the truth in its own line
// only, since it listens there; in the others' lines stand the ports of proxies, one for each pair
// and purpose. One address travels in band, past the configuration: a server that opens an election
// connection introduces itself with its own election address, and a peer with a higher number hangs
// up and calls back *there*. So the election proxies put their own port in its place.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "testkit/servers/zookeeper.hpp"

namespace dlock::testkit {

namespace {

std::string address(std::uint16_t port) { return fmt::format("127.0.0.1:{}", port); }

// Both texts have the same length (all ports of `Port` have five digits), so the length field of
// the message stays right. The introduction is small, first, and comes in one segment.
Filter introduce_as(std::string real, std::string shown) {
  return [real = std::move(real), shown = std::move(shown)](Direction direction, ConnectionId,
                                                            std::string_view bytes) {
    Piece piece{std::string(bytes)};
    const std::size_t at = piece.bytes.find(real);
    if (direction == Direction::to_server && at != std::string::npos) {
      piece.bytes.replace(at, real.size(), shown);
    }
    return std::vector<Piece>{std::move(piece)};
  };
}

}  // namespace

ZooKeeperEnsemble::ZooKeeperEnsemble(ZooKeeperOptions options) {
  for (auto& server : servers_) server = std::make_unique<ZooKeeperServer>(options);
  connect_links();
  for (std::size_t self = 0; self < size; ++self) {
    servers_[self]->id_ = static_cast<int>(self) + 1;
    for (std::size_t other = 0; other < size; ++other) {
      const bool own = self == other;
      const std::uint16_t quorum =
          own ? quorum_ports_[self].number() : link(quorum_links_, self, other).port();
      const std::uint16_t election =
          own ? election_ports_[self].number() : link(election_links_, self, other).port();
      servers_[self]->quorum_lines_.push_back(
          fmt::format("server.{}=127.0.0.1:{}:{}", other + 1, quorum, election));
    }
  }
}

void ZooKeeperEnsemble::connect_links() {
  for (std::size_t from = 0; from < size; ++from) {
    for (std::size_t to = 0; to < size; ++to) {
      if (from == to) continue;
      quorum_links_.push_back({from, to, std::make_unique<FaultProxy>(quorum_ports_[to].number())});
      election_links_.push_back(
          {from, to, std::make_unique<FaultProxy>(election_ports_[to].number())});
    }
  }
  for (Link& one : election_links_) {
    const FaultProxy& way_back = link(election_links_, one.to, one.from);
    one.proxy->set_filter(
        introduce_as(address(election_ports_[one.from].number()), address(way_back.port())));
  }
}

FaultProxy& ZooKeeperEnsemble::link(std::vector<Link>& links, std::size_t from, std::size_t to) {
  const auto found = std::find_if(links.begin(), links.end(), [&](const Link& one) {
    return one.from == from && one.to == to;
  });
  return *found->proxy;
}

void ZooKeeperEnsemble::start() {
  for (auto& server : servers_) server->launch();
  const Deadline deadline = patience();
  for (auto& server : servers_) server->wait_until_it_answers(deadline);
  if (!wait_until_whole(deadline)) {
    throw std::runtime_error("the ZooKeeper ensemble found no leader; the first server's log:\n" +
                             servers_[0]->log());
  }
}

std::string ZooKeeperEnsemble::url() const {
  return fmt::format("zookeeper://{},{},{}/", address(servers_[0]->port()),
                     address(servers_[1]->port()), address(servers_[2]->port()));
}

void ZooKeeperEnsemble::set_cut(std::size_t a, std::size_t b, bool on) {
  if (!on && cuts_.erase(std::minmax(a, b)) == 0) return;  // healthy connections stay up
  if (on) cuts_.insert(std::minmax(a, b));
  for (auto* links : {&quorum_links_, &election_links_}) {
    for (FaultProxy* proxy : {&link(*links, a, b), &link(*links, b, a)}) {
      if (!on) proxy->drop_all();
      proxy->hold(Direction::to_server, on);
      proxy->hold(Direction::to_client, on);
    }
  }
}

void ZooKeeperEnsemble::cut(std::size_t a, std::size_t b) { set_cut(a, b, true); }

void ZooKeeperEnsemble::isolate(std::size_t index) {
  for (std::size_t other = 0; other < size; ++other) {
    if (other != index) cut(index, other);
  }
}

void ZooKeeperEnsemble::heal() {
  set_cut(0, 1, false);
  set_cut(0, 2, false);
  set_cut(1, 2, false);
}

std::optional<std::size_t> ZooKeeperEnsemble::leader() const {
  std::optional<std::size_t> found;
  for (std::size_t index = 0; index < size; ++index) {
    if (servers_[index]->mode() != "leader") continue;
    if (found) return std::nullopt;
    found = index;
  }
  return found;
}

std::vector<std::size_t> ZooKeeperEnsemble::followers() const {
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < size; ++index) {
    if (servers_[index]->mode() == "follower") found.push_back(index);
  }
  return found;
}

std::optional<std::size_t> ZooKeeperEnsemble::wait_for_leader(
    Deadline deadline, std::optional<std::size_t> other_than) const {
  std::optional<std::size_t> found;
  eventually(deadline, [&] {
    found.reset();
    for (std::size_t index = 0; index < size; ++index) {
      if (index != other_than && servers_[index]->mode() == "leader") found = index;
    }
    return found && !followers().empty();
  });
  return found;
}

bool ZooKeeperEnsemble::wait_until_whole(Deadline deadline) const {
  return eventually(deadline, [this] { return leader() && followers().size() == size - 1; });
}

}  // namespace dlock::testkit
