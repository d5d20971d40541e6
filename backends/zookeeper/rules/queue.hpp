// SPDX-License-Identifier: Apache-2.0
//
// Who owns the lock, by one listing of its node's children. Pure.
//
// The sequence number orders the children while it lasts. At its end (2^31 - 1) the server gives
// the same number again, or negative ones that repeat; among such nodes only the czxid tells the
// order, and between them and the numbered ones too: the server makes them younger than all that
// have a number, but whoever writes a name by hand does not.
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
    first,    ///< we own the lock, as a reader with those before us
    behind,   ///< wait for `watch` to go
    missing,  ///< our node is not in this listing
    unborn,   ///< the births of `unborn` are needed to tell
  };
  Kind kind = Kind::missing;
  std::string watch;
  /// When `watch` goes, we are first without another listing: nobody else was before us whom we
  /// would wait for, and nodes of its kind leave nothing behind without being seen to change.
  bool watch_decides = false;
  bool read_write = false;  ///< Curator's readers or writers are in the queue
  std::string seal;         ///< the node of a migration's record before us; empty: none
  std::vector<std::string> unborn;
};

/// One listing, sorted once for all who are in it.
class Queue {
 public:
  explicit Queue(const std::vector<std::string>& children, const Births& births = {});

  QueueDecision decision_of(std::string_view own) const;
  /// The nodes that carry this claim's id, as copies_of(), by name.
  std::vector<std::string> copies_of(std::string_view id) const;
  bool has_only(std::string_view own) const {
    return line_.size() == 1 && line_.front().name == own;
  }
  /// So many stand between those who hold the lock and this one.
  std::size_t waiting_before(std::string_view own) const;
  /// All in line.
  std::vector<std::string> names() const;

 private:
  using Line = std::vector<Contender>;
  using Places = std::vector<std::size_t>;
  Places::const_iterator from(std::string_view name) const;
  /// The nearest before it that it has to wait for; the end if there is none. Who shares waits for
  /// those that are alone only.
  Line::const_iterator obstacle_of(Line::const_iterator one, bool shares) const;

  Line line_;
  Places by_name_;  ///< all of line_: a process with 10,000 in it asks 10,000 times
  bool read_write_ = false;
  std::vector<std::string> unborn_;
};

QueueDecision decision_of(std::string_view own, const std::vector<std::string>& children,
                          const Births& births = {});

/// The contenders of a listing, first in line first. Those at the end of the counter whose birth is
/// not known come last, by name; where no birth is known, they count as younger than all numbers.
std::vector<Contender> in_line(const std::vector<std::string>& children, const Births& births = {});

/// The nodes whose births `in_line` needs beside the known ones: none while every number is one
/// that only one child can have.
std::vector<std::string> births_to_ask(const std::vector<Contender>& line, const Births& births);

/// True for a number that several children may share.
bool needs_birth(const Contender& contender);
/// Of a node's path: it can be another one's by now, made anew by who lost it.
bool has_name_of_several(std::string_view path);

}  // namespace dlock::zookeeper
