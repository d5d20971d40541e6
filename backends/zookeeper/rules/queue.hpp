// SPDX-License-Identifier: Apache-2.0
//
// Finds the owner of the lock in one listing of its node's children. Pure.
//
// The sequence number orders the children until the counter ends. At its end (2^31 - 1) the server
// assigns the same number again, or negative ones that repeat. Among such nodes only the czxid
// shows the order. It is also needed between them and the numbered nodes: those that the server
// names are younger than all numbered ones, but those that a client names by hand may not be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/rules/contender.hpp"

namespace dlock::zookeeper {

/// Node name -> the transaction that created it.
using Births = std::map<std::string, std::int64_t, std::less<>>;

struct QueueDecision {
  enum class Kind {
    first,    ///< this claim owns the lock, as a reader together with those before it
    behind,   ///< wait for the deletion of `watch`
    missing,  ///< this claim's node is not in this listing
    unborn,   ///< the births of `unborn` are needed to decide
  };
  Kind kind = Kind::missing;
  std::string watch;
  /// When `watch` is deleted, this claim is first without another listing. No other node before it
  /// has to be waited for. Nodes of that kind change before they leave a successor.
  bool watch_decides = false;
  bool read_write = false;  ///< Curator's readers or writers are in the queue
  std::string seal;         ///< the node of a migration's record before this claim; empty: none
  std::vector<std::string> unborn;
};

/// One listing, sorted once for all claims in it.
class Queue {
 public:
  explicit Queue(const std::vector<std::string>& children, const Births& births = {});

  QueueDecision decision_of(std::string_view own) const;
  /// The nodes that carry this claim's id, as copies_of(), by name.
  std::vector<std::string> copies_of(std::string_view id) const;
  bool has_only(std::string_view own) const {
    return line_.size() == 1 && line_.front().name == own;
  }
  /// Returns the number of waiters between the holders and this claim.
  std::size_t waiting_before(std::string_view own) const;
  /// Returns all contenders.
  std::vector<std::string> names() const;

 private:
  using Line = std::vector<Contender>;
  using Places = std::vector<std::size_t>;
  Places::const_iterator from(std::string_view name) const;
  /// Returns the nearest node before it that it has to wait for, or the end. A reader waits only
  /// for contenders that hold the lock alone.
  Line::const_iterator obstacle_of(Line::const_iterator one, bool shares) const;

  Line line_;
  Places by_name_;  ///< all of line_: a process with 10,000 in it asks 10,000 times
  bool read_write_ = false;
  std::vector<std::string> unborn_;
};

QueueDecision decision_of(std::string_view own, const std::vector<std::string>& children,
                          const Births& births = {});

/// Returns the contenders of a listing in their order. Those at the end of the counter whose birth
/// is unknown are last, by name. If no birth is known, they count as younger than all numbered
/// ones.
std::vector<Contender> in_line(const std::vector<std::string>& children, const Births& births = {});

/// The nodes whose births `in_line` needs beside the known ones: none while every number is one
/// that only one child can have.
std::vector<std::string> births_to_ask(const std::vector<Contender>& line, const Births& births);

/// Returns whether several children may share the number.
bool needs_birth(const Contender& contender);
/// Returns whether several nodes may have this path in turn: a claim that lost its node may create
/// it again.
bool has_name_of_several(std::string_view path);

}  // namespace dlock::zookeeper
