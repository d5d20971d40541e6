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
    write,    ///< Curator's `__WRIT__`, which may step down to a reader
    read,     ///< Curator's `__READ__`
    foreign,  ///< any other client's
    seal,     ///< a migration's record: before every number
  };
  Kind kind = Kind::foreign;
  std::string name;
  std::int32_t sequence = 0;
};

/// Empty for what is no contender.
std::optional<Contender> parse_contender(std::string_view node);

/// `_c_<id>-lock-`, to which the server adds the sequence number.
std::string contender_prefix(std::string_view id);

/// The node of a seal. Where Curator's readers and writers queue, it must be one of them.
std::string seal_name(std::string_view id, bool among_readers_and_writers);

/// The nodes that carry this claim's id: one, or more after a create whose reply was lost.
std::vector<std::string> copies_of(std::string_view id, const std::vector<std::string>& children);

}  // namespace dlock::zookeeper
