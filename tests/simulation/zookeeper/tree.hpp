// SPDX-License-Identifier: Apache-2.0
//
// The state that every server of a simulated ensemble computes from the log: nodes and sessions.
// The same log gives the same tree.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::simulation::ensemble {

/// As in ZooKeeper's protocol.
enum class Code {
  ok = 0,
  check_failed = -1000,  ///< zookeeper::kCheckFailed
  connection_loss = -4,
  no_node = -101,
  bad_version = -103,
  no_children_for_ephemerals = -108,
  node_exists = -110,
  not_empty = -111,
  session_expired = -112,
  session_moved = -118,
  no_watcher = -121,
};

struct Stat {
  std::int64_t created = 0;  ///< the transaction
  std::int64_t changed = 0;  ///< likewise
  std::int64_t created_ms = 0;
  std::int64_t owner = 0;  ///< the session of an ephemeral node
  std::int32_t version = 0;
};

/// What a client asks, and what the servers ask of themselves.
struct Operation {
  enum class Kind {
    // Writes: they go through the log.
    create,
    remove,
    set,
    check,
    mark_and_remove,
    mark_and_replace,
    open_session,
    close_session,
    reap,  ///< of a container, by the leader
    // Answered by the server that is asked.
    exists,
    get,
    get_and_watch,
    exists_and_watch,
    children,
    forget_watch,
    set_watches,
    ping,
    // Answered by the leader, without a majority.
    sync,
  };
  enum class Mode { persistent, container, ephemeral_sequential, ephemeral };

  Kind kind = Kind::ping;
  std::string path = {};
  std::string data = {};
  std::string heir = {};  ///< of mark_and_replace: the node that is made, with `data` and `mode`
  std::int32_t version = -1;  ///< of set and remove: of the data that must stand there; -1: any
  Mode mode = Mode::persistent;
  std::string checked = {};  ///< a node that must be of this version, or nothing is done
  std::int32_t checked_version = -1;
  std::int64_t session = 0;              ///< whose; 0: a server's or an operator's
  std::chrono::milliseconds timeout{0};  ///< of open_session
  /// The leader's: of a sequential node, or where one's begin. Of set: where they go on, at least.
  std::int32_t sequence = 0;
  std::vector<std::string> watches = {};  ///< of set_watches
  std::vector<std::string> absent = {};   ///< likewise: on nodes that were not there
  std::int64_t seen = 0;                  ///< of set_watches: the newest transaction the client saw

  bool moved = false;  ///< the leader's: sent where its session is no more

  bool is_write() const noexcept { return kind <= Kind::reap; }
};

std::string_view to_string(Operation::Kind kind);

struct Outcome {
  Code code = Code::ok;
  std::int64_t zxid = 0;  ///< of the write, or the newest that the answering server had applied
  std::string text = {};  ///< the created path, or the data
  std::vector<std::string> children = {};
  Stat stat = {};
};

/// What those who watch a node are told.
struct Change {
  std::string path;
  bool deleted;
};

std::string parent_of(std::string_view path);

class Tree {
 public:
  struct Node {
    std::string data;
    Stat stat;
    bool container = false;
    std::int32_t next_sequence = 0;
    bool had_children = false;
    std::size_t children = 0;
  };
  struct Session {
    std::chrono::milliseconds timeout{0};
  };

  Tree();

  /// A write of the log.
  Outcome apply(const Operation& write, std::int64_t zxid, std::int64_t time_ms,
                std::vector<Change>& changes);
  /// A read, but for what it does to watches.
  Outcome read(const Operation& read) const;

  const std::map<std::string, Node>& nodes() const noexcept { return nodes_; }
  const Node* find(const std::string& path) const;
  const std::map<std::int64_t, Session>& sessions() const noexcept { return sessions_; }
  std::vector<std::string> children(const std::string& path) const;
  std::int64_t zxid() const noexcept { return zxid_; }

 private:
  Outcome create(const Operation& write, std::int64_t time_ms, std::vector<Change>& changes);
  Code remove(const std::string& path, std::vector<Change>& changes, std::int32_t version = -1);
  Outcome replace(const Operation& write, std::int64_t time_ms, std::vector<Change>& changes);
  void close_session(std::int64_t session, std::vector<Change>& changes);

  std::map<std::string, Node> nodes_;
  std::map<std::int64_t, Session> sessions_;
  std::int64_t zxid_ = 0;
};

}  // namespace dlock::simulation::ensemble
