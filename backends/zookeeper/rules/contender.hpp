// SPDX-License-Identifier: Apache-2.0
//
// What a contender's node is called, ours and other clients': Curator, kazoo, go-zookeeper,
// madelson and the C recipe queue up under the same parent, and a name that none of them would
// write is not a contender (it is the node of a lock below this one). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::zookeeper {

struct Contender {
  enum class Kind {
    mutex,    ///< `_c_<uuid>-lock-<seq>`: ours and Curator's. Its end frees its place, nothing more
    move,     ///< `_c_<uuid>-move-lock-<seq>`: a migration, which may leave a seal behind
    write,    ///< ours and Curator's `__WRIT__`, which may step down to a reader
    read,     ///< ours and Curator's `__READ__`
    reader,   ///< another client's reader: kazoo's `__rlock__`, madelson's `read-`
    foreign,  ///< any other client's
    seal,     ///< a migration's record: before every number
  };
  Kind kind = Kind::foreign;
  std::string name;
  std::int32_t sequence = 0;
};

/// Empty for what is no contender.
std::optional<Contender> parse_contender(std::string_view node);

/// Readers stand beside readers; whoever else is in line is alone.
inline bool is_shared(Contender::Kind kind) noexcept {
  return kind == Contender::Kind::read || kind == Contender::Kind::reader;
}

/// `_c_<id>-lock-`, to which the server adds the sequence number; of `read` and `write` with their
/// marks.
std::string contender_prefix(std::string_view id, Contender::Kind kind = Contender::Kind::mutex);

/// The reader's node with the number of `node`, which it takes the place of; empty if the number is
/// so near the counter's end that others may have the same.
std::string stepped_down(std::string_view id, std::string_view node);

/// The node of a seal. Where Curator's readers and writers queue, it must be one of them.
std::string seal_name(std::string_view id, bool among_readers_and_writers);

/// With which the names of all its nodes begin, of whatever kind.
std::string claim_prefix(std::string_view id);
/// It carries this claim's id.
bool is_copy_of(std::string_view id, std::string_view node);
/// The nodes that do: one, or more after a create whose reply was lost.
std::vector<std::string> copies_of(std::string_view id, const std::vector<std::string>& children);

}  // namespace dlock::zookeeper
