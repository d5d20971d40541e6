// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/zookeeper/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace dlock::simulation::ensemble {

using Kind = Operation::Kind;

std::string_view to_string(Kind kind) {
  static constexpr std::array<std::string_view, 18> kNames = {"create",
                                                              "remove",
                                                              "set",
                                                              "check",
                                                              "mark_and_remove",
                                                              "mark_and_replace",
                                                              "open_session",
                                                              "close_session",
                                                              "reap",
                                                              "exists",
                                                              "get",
                                                              "get_and_watch",
                                                              "exists_and_watch",
                                                              "children",
                                                              "forget_watch",
                                                              "set_watches",
                                                              "ping",
                                                              "sync"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string parent_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

Tree::Tree() { nodes_["/"] = {}; }

const Tree::Node* Tree::find(const std::string& path) const {
  const auto found = nodes_.find(path);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::vector<std::string> Tree::children(const std::string& path) const {
  const auto prefix = path == "/" ? path : path + "/";
  std::vector<std::string> names;
  for (auto at = nodes_.upper_bound(prefix); at != nodes_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    auto name = at->first.substr(prefix.size());
    if (name.find('/') == std::string::npos) names.push_back(std::move(name));
  }
  return names;
}

Outcome Tree::apply(const Operation& write, std::int64_t zxid, std::int64_t time_ms,
                    std::vector<Change>& changes) {
  zxid_ = zxid;
  Outcome outcome;
  const bool opens = write.kind == Kind::open_session;
  if (write.session != 0 && !opens && sessions_.find(write.session) == sessions_.end()) {
    outcome.code = Code::session_expired;
    outcome.zxid = zxid;
    return outcome;
  }
  if (write.moved) {
    outcome.code = Code::session_moved;
    outcome.zxid = zxid;
    return outcome;
  }
  const auto* const checked = write.checked.empty() ? nullptr : find(write.checked);
  const bool holds = write.checked.empty() ||
                     (checked != nullptr && checked->stat.version == write.checked_version);
  if (!holds) {
    outcome.code = Code::check_failed;
    outcome.zxid = zxid;
    return outcome;
  }
  const auto found = nodes_.find(write.path);
  switch (write.kind) {
    case Kind::create:
      outcome = create(write, time_ms, changes);
      break;
    case Kind::remove:
      outcome.code = remove(write.path, changes, write.version);
      break;
    case Kind::mark_and_replace:
      outcome = replace(write, time_ms, changes);
      break;
    case Kind::mark_and_remove:
      // Watchers are told of the first operation: their watch is used up by it.
      if (found != nodes_.end() && found->second.children == 0) {
        changes.push_back({write.path, false});
      }
      outcome.code = remove(write.path, changes);
      break;
    case Kind::set:
      if (found == nodes_.end()) {
        outcome.code = Code::no_node;
        break;
      }
      if (write.version >= 0 && write.version != found->second.stat.version) {
        outcome.code = Code::bad_version;
        break;
      }
      found->second.data = write.data;
      ++found->second.stat.version;
      found->second.stat.changed = zxid;
      found->second.next_sequence = std::max(found->second.next_sequence, write.sequence);
      outcome.stat = found->second.stat;
      changes.push_back({write.path, false});
      break;
    case Kind::check:
      if (found == nodes_.end()) outcome.code = Code::no_node;
      break;
    case Kind::open_session:
      sessions_[write.session] = {write.timeout};
      break;
    case Kind::close_session:
      close_session(write.session, changes);
      break;
    case Kind::reap:
      if (found != nodes_.end() && found->second.container && found->second.had_children &&
          found->second.children == 0) {
        outcome.code = remove(write.path, changes);
      }
      break;
    default:
      break;
  }
  outcome.zxid = zxid;
  return outcome;
}

// A number that is past the counter's end names the node, and is not kept: the next one starts from
// the end again.
Outcome Tree::create(const Operation& write, std::int64_t time_ms, std::vector<Change>& changes) {
  Outcome outcome;
  const auto parent = nodes_.find(parent_of(write.path));
  if (parent == nodes_.end()) {
    outcome.code = Code::no_node;
    return outcome;
  }
  if (parent->second.stat.owner != 0) {
    outcome.code = Code::no_children_for_ephemerals;
    return outcome;
  }
  auto path = write.path;
  const bool sequential = write.mode == Operation::Mode::ephemeral_sequential;
  if (sequential) path += fmt::format("{:010}", write.sequence);
  if (nodes_.find(path) != nodes_.end()) {
    outcome.code = Code::node_exists;
    return outcome;
  }
  constexpr auto kEnd = std::numeric_limits<std::int32_t>::max();
  const auto used = sequential ? write.sequence : parent->second.next_sequence;
  const auto next = used == kEnd ? kEnd : used + 1;
  parent->second.next_sequence = std::max(parent->second.next_sequence, next);
  parent->second.had_children = true;
  ++parent->second.children;
  Node node;
  node.data = write.data;
  const bool ephemeral = sequential || write.mode == Operation::Mode::ephemeral;
  node.stat = {zxid_, zxid_, time_ms, ephemeral ? write.session : 0, 0};
  node.container = write.mode == Operation::Mode::container;
  if (node.container) node.next_sequence = write.sequence;
  outcome.stat = node.stat;
  outcome.text = path;
  changes.push_back({path, false});  // for whoever watches what was not there
  nodes_.emplace(std::move(path), std::move(node));
  return outcome;
}

// All of it or nothing; watchers of the old node are told of the first operation only.
Outcome Tree::replace(const Operation& write, std::int64_t time_ms, std::vector<Change>& changes) {
  Outcome outcome;
  const auto found = nodes_.find(write.path);
  if (found == nodes_.end()) {
    outcome.code = Code::no_node;
    return outcome;
  }
  if (found->second.children != 0) {
    outcome.code = Code::not_empty;
    return outcome;
  }
  Operation making;
  making.kind = Kind::create;
  making.path = write.heir;
  making.data = write.data;
  making.session = write.session;
  making.mode = write.mode;
  changes.push_back({write.path, false});
  outcome = create(making, time_ms, changes);
  if (outcome.code != Code::ok) {
    changes.clear();
    return outcome;
  }
  outcome.code = remove(write.path, changes);
  return outcome;
}

Code Tree::remove(const std::string& path, std::vector<Change>& changes, std::int32_t version) {
  const auto found = nodes_.find(path);
  if (found == nodes_.end()) return Code::no_node;
  if (version >= 0 && version != found->second.stat.version) return Code::bad_version;
  if (found->second.children != 0) return Code::not_empty;
  --nodes_[parent_of(path)].children;
  nodes_.erase(found);
  changes.push_back({path, true});
  return Code::ok;
}

void Tree::close_session(std::int64_t session, std::vector<Change>& changes) {
  std::vector<std::string> paths;
  for (const auto& [path, node] : nodes_) {
    if (node.stat.owner == session) paths.push_back(path);
  }
  for (const auto& path : paths) remove(path, changes);
  sessions_.erase(session);
}

Outcome Tree::read(const Operation& read) const {
  Outcome outcome;
  outcome.zxid = zxid_;
  if (read.kind == Kind::ping || read.kind == Kind::sync || read.kind == Kind::set_watches) {
    return outcome;
  }
  const auto* node = find(read.path);
  if (node == nullptr) {
    outcome.code = Code::no_node;
    return outcome;
  }
  outcome.stat = node->stat;
  if (read.kind == Kind::children) outcome.children = children(read.path);
  if (read.kind == Kind::get || read.kind == Kind::get_and_watch) outcome.text = node->data;
  return outcome;
}

}  // namespace dlock::simulation::ensemble
