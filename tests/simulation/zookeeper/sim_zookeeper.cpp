// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/zookeeper/sim_zookeeper.hpp"

#include <algorithm>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/options.hpp"
#include "backends/zookeeper/rules/contender.hpp"
#include "backends/zookeeper/rules/permits.hpp"
#include "backends/zookeeper/rules/queue.hpp"
#include "dlock/zookeeper.hpp"

namespace dlock::simulation {
namespace {

constexpr milliseconds kSessionTimeout{3000};
constexpr std::string_view kRoot = "/locks";

}  // namespace

std::shared_ptr<zookeeper::Client> SimZooKeeper::Driver::make_client(
    Env& env, zookeeper::Client::Options options, zookeeper::Client::Listener& listener) {
  auto& process = dynamic_cast<Process&>(env);
  auto client =
      std::make_shared<SimClient>(Wire::Ends{store_.world_, store_.network_, store_.servers_},
                                  process, std::move(options), listener);
  std::erase_if(store_.clients_, [](const auto& one) { return one.expired(); });
  store_.clients_.push_back(client);
  return client;
}

asio::awaitable<std::string> SimZooKeeper::Driver::ask_server(Env&, std::string, std::string,
                                                              TimePoint) {
  co_return std::string();
}

SimZooKeeper::SimZooKeeper(World& world, Network& network, ensemble::Settings settings)
    : world_(world), network_(network), servers_(world, settings), driver_(*this) {
  servers_.on_request = [this](const ensemble::Operation& request) {
    const auto bytes = request.path.size() + request.data.size() + request.heir.size();
    if (on_command) on_command(ensemble::to_string(request.kind), bytes);
  };
  servers_.on_created = [this](const std::string& path) {
    const auto name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("_c_")) on_made(name.substr(3, 36), 0);
  };
}

const BackendDescriptor& SimZooKeeper::descriptor() const { return zookeeper::backend(); }

StoreOptions SimZooKeeper::options() const {
  StoreOptions options;
  options.name = name();
  options.scheme = name();
  options.path = kRoot;
  options.app = "simulation";
  for (int id = 1; id <= ensemble::Ensemble::kServers; ++id) {
    if (pinned_ >= 0 && pinned_ != id - 1) continue;
    options.endpoints.push_back({"10.0.0." + std::to_string(id), 2181});
  }
  for (const auto& spec : zookeeper::option_specs()) {
    if (!spec.default_value.empty()) options.text[std::string(spec.name)] = spec.default_value;
  }
  options.text["session_timeout"] = "3s";
  options.number["session_timeout"] = kSessionTimeout.count();
  return options;
}

std::unique_ptr<Backend> SimZooKeeper::make_backend(Process& process, EventSink& sink) {
  return std::make_unique<zookeeper::ZooKeeperBackend>(options(), process, sink, driver_);
}

std::vector<Fault> SimZooKeeper::faults() const {
  return {Fault::request_lost,     Fault::reply_lost,   Fault::request_late, Fault::reply_late,
          Fault::duplicated,       Fault::reset_before, Fault::reset_after,  Fault::overtaken,
          Fault::server_restarted, Fault::failover,     Fault::server_cut,   Fault::deleted};
}

// One at a time: a majority is always there, and agrees soon.
bool SimZooKeeper::strike(Fault fault, Process& near, const std::string& lock) {
  if (fault == Fault::deleted) return remove_by_hand(lock);
  if (!servers_.is_whole()) return false;
  switch (fault) {
    case Fault::server_restarted: {
      const int close_by = server_near(near, lock);
      const auto any = static_cast<int>(world_.below(ensemble::Ensemble::kServers));
      servers_.kill(close_by >= 0 && world_.chance(0.5) ? close_by : any,
                    world_.between(milliseconds(100), seconds(2)));
      return true;
    }
    case Fault::failover:
      servers_.kill(servers_.leader(), world_.between(seconds(1), seconds(6)));
      return true;
    case Fault::server_cut:
      return cut_something(near, lock);
    default:
      return false;
  }
}

/// A server that goes on answering reads and pings: a follower; the leader, which does not know
/// that it is deposed; a follower of which its leader has heard least.
bool SimZooKeeper::cut_something(Process& near, const std::string& lock) {
  const int close_by = server_near(near, lock);
  const int leader = servers_.leader();
  const auto time = world_.between(kSessionTimeout / 2, 4 * kSessionTimeout);
  const auto flavour = world_.below(5);
  if (flavour > 2) {
    auto* const holder = holder_of(lock);
    if (holder == nullptr) return false;
    hold_back(holder->process());
    servers_.cut_after_write(holder->session_id(), time);
    return true;
  }
  if (flavour == 0 || close_by < 0) {
    auto cut = close_by;
    if (cut < 0) cut = static_cast<int>(world_.below(ensemble::Ensemble::kServers));
    servers_.cut(cut, time);
    if (cut == leader && world_.chance(0.5)) servers_.leave_leader(leader);
    return true;
  }
  if (flavour == 1) {
    servers_.cut(leader, time);
    if (world_.chance(0.7)) servers_.leave_leader(leader);
    return true;
  }
  const auto session = session_of(near);
  if (session == 0 || servers_.server_of(session) == leader) return false;
  // Less than T/12, which is what the deadline's rule has for the way to the leader.
  servers_.slow_links(world_.between(milliseconds(5), milliseconds(60)), kSessionTimeout);
  servers_.cut_after_write(session, time);
  return true;
}

SimClient* SimZooKeeper::holder_of(const std::string& lock) const {
  const auto first = first_of(lock);
  if (first.empty()) return nullptr;
  const auto session = servers_.committed().find(path_of(lock) + "/" + first)->stat.owner;
  for (const auto& weak : clients_) {
    const auto client = weak.lock();
    const bool runs = client && client->connected() && !client->process().is_paused();
    if (runs && client->session_id() == session) return client.get();
  }
  return nullptr;
}

/// What it says, or hears, is late: the leader has heard of it long before it knows so.
void SimZooKeeper::hold_back(Process& process) {
  if (world_.chance(0.4)) {
    process.pause();
    world_.after(world_.between(milliseconds(100), kSessionTimeout * 2 / 3), [&process] {
      if (process.is_paused()) process.resume();
    });
    return;
  }
  network_.arm(process, world_.chance(0.5) ? Fault::request_late : Fault::reply_late, [] {});
}

std::string SimZooKeeper::path_of(const std::string& lock) {
  return zookeeper::NameMap("", kRoot).path(lock);
}

std::string SimZooKeeper::first_of(const std::string& lock) const {
  const auto path = path_of(lock);
  const auto& tree = servers_.committed();
  zookeeper::Births births;
  const auto children = tree.children(path);
  for (const auto& child : children) births[child] = tree.find(path + "/" + child)->stat.created;
  const auto line = zookeeper::in_line(children, births);
  return line.empty() ? std::string() : line.front().name;
}

bool SimZooKeeper::remove_by_hand(const std::string& lock) {
  const auto first = first_of(lock);
  if (first.empty()) return false;
  const auto id = first.substr(3, 36);  // _c_<uuid>-lock-<number>
  ensemble::Operation removal;
  removal.kind = ensemble::Operation::Kind::remove;
  removal.path = path_of(lock) + "/" + first;
  const auto told = [this, lock, id, first] {
    // Somebody may have been quicker.
    if (first_of(lock) != first) on_forgotten(lock, id, Fault::deleted);
  };
  return servers_.submit(std::move(removal), told);
}

int SimZooKeeper::server_near(const Process& near, const std::string& lock) const {
  const auto first = first_of(lock);
  if (!first.empty() && world_.chance(0.7)) {
    const auto* node = servers_.committed().find(path_of(lock) + "/" + first);
    if (const int there = servers_.server_of(node->stat.owner); there >= 0) return there;
  }
  const auto session = session_of(near);
  return session == 0 ? -1 : servers_.server_of(session);
}

std::int64_t SimZooKeeper::session_of(const Process& process) const {
  std::int64_t session = 0;
  for (const auto& weak : clients_) {
    const auto client = weak.lock();
    if (client && &client->process() == &process && client->connected()) {
      session = client->session_id();
    }
  }
  return session;
}

SimClient& SimZooKeeper::client_of(const Process& process) const {
  for (const auto& weak : clients_) {
    const auto client = weak.lock();
    if (client && &client->process() == &process) return *client;
  }
  throw std::logic_error("this process has no client");
}

void SimZooKeeper::on_crash(Process& process) {
  for (const auto& weak : clients_) {
    const auto client = weak.lock();
    if (client && &client->process() == &process) client->crash();
  }
}

checkers::Belongings SimZooKeeper::belongings() const {
  checkers::Belongings all;
  const auto below = std::string(kRoot) + "/";
  for (const auto& [path, node] : servers_.committed().nodes()) {
    if (path.starts_with(below)) all.keys.insert(path);
  }
  all.watches = servers_.watches();
  // One of each session, for as long as it lasts.
  std::erase_if(all.watches, [](const std::string& one) { return one.ends_with("/%offset"); });
  return all;
}

// A node that nobody takes care of stands in the way of all that come after it. Those of a session
// that a leader has called over go with it, at the latest a session's time after the next election.
std::vector<std::string> SimZooKeeper::owners(const std::string& lock) const {
  std::vector<std::string> all;
  for (const auto& child : servers_.committed().children(path_of(lock))) {
    const auto* node = servers_.committed().find(path_of(lock) + "/" + child);
    if (servers_.was_ended(node->stat.owner)) continue;
    if (zookeeper::parse_contender(child)) all.push_back(child.substr(3, 36));
  }
  for (const auto part : {zookeeper::kGuardNode, zookeeper::kLeasesNode}) {
    const auto below = path_of(lock) + "/" + std::string(part);
    for (const auto& child : servers_.committed().children(below)) {
      const auto* node = servers_.committed().find(below + "/" + child);
      if (!servers_.was_ended(node->stat.owner)) all.push_back(child.substr(3, 36));
    }
  }
  return all;
}

// Containers: they are reaped in time.
bool SimZooKeeper::is_permitted(const std::string& key) const {
  const bool is_lease = key.find("-lease-") != std::string::npos;
  return !is_lease && !zookeeper::parse_contender(key.substr(key.rfind('/') + 1)).has_value();
}

// What a committed write is worth at most.
Duration SimZooKeeper::lease() const { return kSessionTimeout * 2 / 3; }

// A heartbeat is the session's, whatever became of a node; its own watch tells soon after it can be
// heard, and is set 200 ms after the grant.
Duration SimZooKeeper::believes_on() const { return lease() + milliseconds(1500); }

// A leader that was just elected (two ticks and a little) gives each session its whole time again
// and ends it at a whole tick; as long may the last late request take.
Duration SimZooKeeper::longest_lease() const {
  const auto tick = servers_.settings().tick;
  return 3 * tick + kSessionTimeout + 2 * tick + seconds(2);
}

// An election; the sessions of the dead end; a client dials for up to 2T/3, one more time if its
// own session is over; the core pauses for up to 3 s and gives a lost request a second, twice.
Duration SimZooKeeper::progress_bound() const {
  return longest_lease() + 2 * (kSessionTimeout * 2 / 3) + seconds(3) + seconds(2);
}

// A watch event and a round trip; the next in line may just have given up, a few times on end; a
// follower may lag by 400 ms, for the answer and for the watch.
Duration SimZooKeeper::calm_bound() const { return milliseconds(500 + 2 * 400); }

// It rests on the majority alone, which always is there.
std::unique_ptr<SimStore> make_zookeeper(World& world, Network& network, bool exclusive) {
  if (!exclusive) return nullptr;
  ensemble::Settings settings;
  settings.tick = milliseconds(world.chance(0.5) ? 1000 : 750);
  settings.sync_limit = world.chance(0.5) ? 5 : 10;
  settings.near_end = world.chance(0.2) ? 0.7 : 0;
  settings.reap_every = world.between(seconds(2), seconds(8));
  return std::make_unique<SimZooKeeper>(world, network, settings);
}

}  // namespace dlock::simulation
