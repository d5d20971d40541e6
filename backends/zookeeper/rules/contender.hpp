// SPDX-License-Identifier: Apache-2.0
//
// Parses and writes the names of contenders' nodes. Curator, kazoo, go-zookeeper, madelson and the
// C recipe queue under the same parent. Any other name is not a contender: it is the node of a lock
// below this one. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::zookeeper {

struct Contender {
  enum class Kind {
    mutex,    ///< `_c_<uuid>-lock-<seq>`, dlock's and Curator's; its deletion only frees its place
    move,     ///< `_c_<uuid>-move-lock-<seq>`: a migration, which may leave a seal behind
    write,    ///< dlock's and Curator's `__WRIT__`, which may be downgraded to a reader
    read,     ///< dlock's and Curator's `__READ__`
    reader,   ///< another client's reader: kazoo's `__rlock__`, madelson's `read-`
    foreign,  ///< any other client's
    seal,     ///< a migration's record: before every number
  };
  Kind kind = Kind::foreign;
  std::string name;
  std::int32_t sequence = 0;
};

/// Empty if the name is not a contender's.
std::optional<Contender> parse_contender(std::string_view node);

/// Readers hold the lock together. Any other contender holds it alone.
inline bool is_shared(Contender::Kind kind) noexcept {
  return kind == Contender::Kind::read || kind == Contender::Kind::reader;
}

/// Returns `_c_<id>-lock-`, to which the server appends the sequence number; `read` and `write`
/// have their marks.
std::string contender_prefix(std::string_view id, Contender::Kind kind = Contender::Kind::mutex);

/// Returns the name of the reader's node that replaces `node`, with the same number. Empty if the
/// number is so near the counter's end that others may have the same.
std::string stepped_down(std::string_view id, std::string_view node);

/// The node of a seal. Where Curator's readers and writers queue, it must be one of them.
std::string seal_name(std::string_view id, bool among_readers_and_writers);

/// Returns the prefix of the names of all its nodes, of any kind.
std::string claim_prefix(std::string_view id);
/// Returns whether the node has this claim's id.
bool is_copy_of(std::string_view id, std::string_view node);
/// Returns the nodes with this claim's id: one, or more after a create whose reply was lost.
std::vector<std::string> copies_of(std::string_view id, const std::vector<std::string>& children);

}  // namespace dlock::zookeeper
