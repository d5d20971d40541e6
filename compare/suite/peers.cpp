// SPDX-License-Identifier: Apache-2.0
#include "compare/suite/peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <stdexcept>

#include "compare/embedded.hpp"
#include "compare/suite/scenario.hpp"
#include "testkit/servers/server.hpp"
#include "testkit/temp_dir.hpp"

namespace dlock::compare {

namespace {

struct Peer {
  const char* name;
  const char* family;
  const char* program;              ///< a file of compare/peers/
  std::vector<std::string> launch;  ///< before the program
  const char* package;              ///< what to install
  std::vector<std::string> probe;   ///< a command that succeeds if it is installed
  bool has_readers = false;
  bool has_permits = false;
  bool has_tasks = false;  ///< its clients are tasks of one loop
};

const std::vector<Peer>& peers() {
  const std::string jars =
      "/usr/share/java/curator-recipes.jar:/usr/share/java/"
      "curator-framework.jar:/usr/share/java/curator-client.jar:/usr/share/"
      "java/zookeeper.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/"
      "slf4j-nop.jar:/usr/share/java/guava.jar";
  static const std::vector<Peer> all{
      {"kazoo",
       "zookeeper",
       "peer.py",
       {"/usr/bin/python3"},
       "python3-kazoo",
       {"/usr/bin/python3", "-c", "import kazoo"},
       false,  // its ReadLock waits for writers that came later, which wait for it
       true},
      {"redis-py",
       "redis",
       "peer.py",
       {"/usr/bin/python3"},
       "python3-redis",
       {"/usr/bin/python3", "-c", "import redis"}},
      {"curator",
       "zookeeper",
       "Peer.java",
       {"java", "-XX:TieredStopAtLevel=4", "-cp", jars},
       "libcurator-recipes-java default-jdk-headless",
       {"sh", "-c", "test -e /usr/share/java/curator-recipes.jar && command -v javac"},
       true,
       true},
      {"node-redlock",
       "redis",
       "peer.js",
       {"node"},
       "nodejs, and of npm: redlock ioredis, where NODE_PATH leads to them",
       {"node", "-e", "require('redlock');require('ioredis')"},
       false,
       false,
       true},
  };
  return all;
}

const Peer* find_peer(std::string_view name) {
  const auto found = std::find_if(peers().begin(), peers().end(),
                                  [&](const Peer& peer) { return peer.name == name; });
  return found == peers().end() ? nullptr : &*found;
}

/// Any thread.
DriverProgram program_of(Context& context, const Peer& peer) {
  const auto program = context.folder / peer.program;
  {
    static std::mutex mutex;
    const std::scoped_lock guard(mutex);
    if (!std::filesystem::exists(program)) {
      testkit::write_file(program, embedded(std::string("peers/") + peer.program));
    }
  }
  auto command = peer.launch;
  command.push_back(program.string());
  return {peer.name, std::move(command)};
}

/// Adds the peers of this store that have it.
void add_peers(Context& context, const Store& store, bool Peer::*what,
               std::vector<DriverProgram>& drivers) {
  for (const auto& name : context.options.peers) {
    const Peer* peer = find_peer(name);
    if (peer == nullptr || peer->family != store.kind().family || !(peer->*what)) continue;
    drivers.push_back(program_of(context, *peer));
  }
}

/// There is no floor of sharing. Those of other stores have neither readers nor permits.
std::vector<DriverProgram> sharers_on(Context& context, const Store& store, bool Peer::*shares) {
  std::vector<DriverProgram> drivers{{"dlock"}};
  add_peers(context, store, shares, drivers);
  return drivers;
}

std::vector<DriverProgram> drivers_of(Context& context, const Store& store,
                                      std::string_view measure) {
  if (measure == "readers") return sharers_on(context, store, &Peer::has_readers);
  if (measure == "permits") return sharers_on(context, store, &Peer::has_permits);
  std::vector<DriverProgram> drivers{{"dlock"}, {"floor"}};
  if (measure == "crowd") return drivers;  // their programs have no crowds
  if (measure == "tasks") {
    add_peers(context, store, &Peer::has_tasks, drivers);
    return drivers;
  }
  for (const auto& name : context.options.peers) {
    const Peer* peer = find_peer(name);
    if (peer == nullptr || peer->family != store.kind().family) continue;
    drivers.push_back(program_of(context, *peer));
  }
  return drivers;
}

}  // namespace

void check_peers(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const Peer* peer = find_peer(name);
    if (peer == nullptr) {
      std::vector<std::string> known;
      for (const auto& one : peers()) known.emplace_back(one.name);
      throw NothingToMeasure(no_such("client", name, known));
    }
    bool there = false;
    try {
      there = testkit::run({.argv = peer->probe}).status.success();
    } catch (const std::system_error&) {
      there = false;
    }
    if (!there) throw testkit::MissingPackage(name, peer->package);
  }
}

std::vector<DriverProgram> drivers_for(Context& context, const Store& store,
                                       const boost::json::object& scenario) {
  auto drivers = drivers_of(context, store, scenario.at("measure").as_string());
  const auto* others = scenario.if_contains("ours_too");
  if (others == nullptr) return drivers;
  for (const auto& other : others->as_array()) {
    drivers.push_back({std::string(other.at("driver").as_string()),
                       {},
                       std::string(other.at("options").as_string())});
  }
  return drivers;
}

std::vector<std::string> guards_on(const Options& options, const StoreKind& kind) {
  std::vector<std::string> names;
  if (kind.id == "redis-sentinel") return names;  // their programs do not ask a Sentinel
  for (const auto& name : options.peers) {
    const Peer* peer = find_peer(name);
    if (peer != nullptr && peer->family == kind.family) names.push_back(name);
  }
  return names;
}

DriverProgram guard_program(Context& context, const std::string& name) {
  return program_of(context, *find_peer(name));
}

}  // namespace dlock::compare
