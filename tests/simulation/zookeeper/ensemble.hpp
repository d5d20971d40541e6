// SPDX-License-Identifier: Apache-2.0
//
// Three ZooKeeper servers: one log that a majority agrees on, of which each server has applied a
// prefix; a leader that decides alone when a session is over, by what it has heard; followers that
// tell it of their clients' packets only with its next ping; elections. Knows nothing of dlock.
//
// What a client is told here has left the server; the way to the client and back is in wire.hpp.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/world.hpp"
#include "tests/simulation/zookeeper/tree.hpp"

namespace dlock::simulation::ensemble {

/// The client's end of a connection.
class Peer {
 public:
  virtual ~Peer() = default;
  /// Connected; session 0: the one that was asked for is over.
  virtual void on_session(std::int64_t session, milliseconds timeout) = 0;
  virtual void on_reply(std::uint64_t request, const Outcome& outcome) = 0;
  virtual void on_change(const Change& change) = 0;
  /// The server has closed the connection, or is no more.
  virtual void on_closed() = 0;
};

struct Settings {
  milliseconds tick{1000};
  /// In ticks: how long a server believes in the others without a word from them.
  int sync_limit = 5;
  /// How likely a new container's counter begins near its end.
  double near_end = 0;
  /// How often empty containers are looked for.
  Duration reap_every = seconds(5);
};

class Ensemble {
 public:
  static constexpr int kServers = 3;

  Ensemble(World& world, Settings settings);
  Ensemble(const Ensemble&) = delete;
  Ensemble& operator=(const Ensemble&) = delete;

  // A client's connection.
  bool accepts(int server) const;
  /// `session` 0: a new one. `seen`: the newest transaction the client knows of; a server that is
  /// behind it refuses.
  void connect(int server, std::shared_ptr<Peer> peer, std::int64_t session, milliseconds timeout,
               std::int64_t seen);
  void receive(const Peer& peer, std::uint64_t request, Operation operation);
  /// The client's end is closed.
  void disconnect(const Peer& peer);
  /// A write that comes over no connection: a late packet's, or an operator's. False without a
  /// leader.
  bool submit(Operation write, Job committed);

  /// Told of each create that a majority has agreed on, with the path as it was asked for.
  std::function<void(const std::string& path)> on_created = [](const std::string&) {};

  /// Told of each request of a client's.
  std::function<void(const Operation& request)> on_request = [](const Operation&) {};

  // What goes wrong.
  void kill(int server, Duration down);
  void cut(int server, Duration time);
  /// As soon as the session's next write is answered by a follower, that one is cut off: its leader
  /// has heard of the write, but not with a ping.
  void cut_after_write(std::int64_t session, Duration time);
  /// Messages between the servers take that much longer.
  void slow_links(Duration by, Duration time);
  /// The followers of a cut leader notice soon (its side of the connection is gone), or late.
  void leave_leader(int leader);
  void heal();
  bool is_whole() const;

  /// The one of the newest epoch; -1: none.
  int leader() const;
  /// Where the session is connected; -1: nowhere.
  int server_of(std::int64_t session) const;
  std::int64_t session_of(const Peer& peer) const;
  /// What a majority has agreed on.
  const Tree& committed() const noexcept { return committed_; }
  const Tree& tree_of(int server) const { return servers_.at(at(server)).tree; }
  /// `server/path` of each watch.
  std::multiset<std::string> watches() const;
  /// Whether a leader has said that it is over, agreed on or not.
  bool was_ended(std::int64_t session) const { return ended_.contains(session); }
  const Settings& settings() const noexcept { return settings_; }
  /// Also on a leader that has been deposed and does not know it.
  bool is_leading(int server) const;

 private:
  enum class Role { looking, following, leading };
  struct Origin {
    int server = -1;
    std::uint64_t connection = 0;
    std::uint64_t request = 0;
  };
  struct Proposal {
    Operation write;
    Origin origin;
    Job committed;
    std::int64_t zxid = 0;
    std::int64_t time_ms = 0;
    std::set<int> logged_by;
    std::vector<Job> syncs;  ///< what waits for it to be committed
  };
  using ProposalPtr = std::shared_ptr<Proposal>;
  struct Pending {
    std::uint64_t request;
    Operation operation;
    std::optional<Outcome> outcome;
  };
  struct Connection {
    std::shared_ptr<Peer> peer;
    std::int64_t session = 0;
    milliseconds timeout{0};
    TimePoint heard{};
    std::deque<Pending> pending;
    std::set<std::string> watches;
  };
  struct Follower {
    std::uint64_t association = 0;
    TimePoint heard{};
  };
  struct Server {
    int id = 0;
    bool up = true;
    Role role = Role::looking;
    std::int64_t epoch = 0;
    Tree tree;
    std::size_t applied = 0;
    std::int64_t logged = 0;            ///< the newest transaction it has on disk
    std::vector<ProposalPtr> accepted;  ///< on disk, not known to be committed
    std::map<std::uint64_t, Connection> connections;
    TimePoint ready_at{};    ///< looking: has made up its mind
    std::uint64_t life = 0;  ///< counts roles: what was begun in another is void
    // Following.
    int leader = -1;
    std::uint64_t association = 0;
    TimePoint heard{};
    TimePoint applies_until{};
    TimePoint writes_until{};        ///< its disk, in order
    std::set<std::int64_t> touched;  ///< sessions heard of since the leader's last ping
    // Leading.
    std::map<int, Follower> followers;
    std::deque<ProposalPtr> outstanding;
    std::map<std::string, std::int32_t> next_sequence;  ///< of parents with outstanding children
    std::map<std::int64_t, TimePoint> expiries;
    std::map<std::int64_t, int> owners;  ///< the server that each session was last seen at
    std::int64_t last_zxid = 0;
  };
  struct Link {
    bool is_cut = false;
    // Per direction, towards the higher server first.
    std::array<TimePoint, 2> last{};
    std::array<std::deque<Job>, 2> queue;  ///< on their way, in their order
    std::array<int, 2> held{};             ///< that would have arrived, were it not cut
  };

  static std::size_t at(int server) { return static_cast<std::size_t>(server); }
  Server& server(int id) { return servers_.at(at(id)); }
  const Server& server(int id) const { return servers_.at(at(id)); }
  Link& link(int a, int b);
  void after(Duration time, Job job);
  /// Runs if the server still plays the same role then.
  void after(Server& server, Duration time, Job job);
  /// Over the link, in order; void if their association has ended when it arrives.
  void send(int from, int to, Job job);
  void deliver(int from, int to, Job job);
  void arrive_later(int from, int to);
  bool associated(int a, int b) const;

  // ensemble.cpp: the log
  void forward(Server& from, Operation write, Origin origin);
  void propose(Server& leader, Operation write, Origin origin, Job committed);
  void number(Server& leader, Operation& write);
  void log_at(Server& follower, const ProposalPtr& proposal);
  void commit_ready(Server& leader);
  void append(const ProposalPtr& proposal);
  void apply_later(Server& follower, std::size_t count, Job then);
  void apply(Server& server, std::size_t count);
  void on_session_opened(Server& server, const Proposal& proposal);

  // ensemble_clients.cpp
  std::pair<Server*, std::uint64_t> find(const Peer& peer);
  void establish(Server& server, std::uint64_t connection, bool valid);
  void complete(const Origin& origin, Outcome outcome);
  void drain(Server& server, std::uint64_t connection);
  Outcome answer(Server& server, Connection& connection, const Operation& read);
  void sync(Server& leader, Origin origin);
  void close(Server& server, std::uint64_t connection);
  void tell_watchers(Server& server, const std::vector<Change>& changes);
  void touch(Server& leader, std::int64_t session);
  bool revalidate(Server& leader, std::int64_t session, int at);
  TimePoint bucket(TimePoint when) const;
  void close_silent(Server& server);

  // ensemble_roles.cpp
  void look(Server& server);
  void lead(Server& server);
  void follow(Server& server, Server& leader);
  void try_to_find_leader(Server& server);
  void beat(int id);
  void ping(Server& leader);
  void expire(Server& leader);
  void expire_in_turn();
  void reap_in_turn();
  void mend(int server);

  World& world_;
  const Settings settings_;
  std::array<Server, kServers> servers_;
  std::array<Link, kServers> links_;  ///< by the server that is not at either end
  std::vector<ProposalPtr> log_;
  Tree committed_;
  std::int64_t last_session_ = 0x100000000;
  std::uint64_t last_number_ = 0;
  std::set<std::int64_t> ended_;
  Duration slowness_{};
  std::int64_t cut_after_ = 0;
  Duration cut_time_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dlock::simulation::ensemble
