// SPDX-License-Identifier: Apache-2.0
//
// Lock name <-> path below the root. Pure and injective.
//
// `orders/42` of root `/app` is `/app/orders/42`, as in Curator. Percent-escaped are: `%`; the
// characters that a ZooKeeper server refuses (control characters, private use, U+FFF0 and above,
// everything beyond the basic plane); the last character of a part that could be a contender's
// node, so that no client counts the node of `a/_c_...-lock-0000000001` in the queue of `a`; and a
// first part `zookeeper` directly below `/`, which belongs to the server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::zookeeper {

class NameMap {
 public:
  /// `chroot` must exist on the server, `root` below it is made when absent. Both empty or
  /// absolute.
  NameMap(std::string_view chroot, std::string_view root);

  /// The root's full path, `/` at least.
  const std::string& root() const noexcept { return root_; }
  /// The nodes of the root to make, outermost first; none of the chroot's.
  const std::vector<std::string>& root_nodes() const noexcept { return root_nodes_; }

  std::string path(std::string_view lock) const;
  /// Nodes of dlock that are not locks. A lock's path never has a `%` without an escape.
  std::string offset() const { return below_root("%offset"); }
  std::string notes() const { return below_root("%notes"); }
  /// Written to ask for the time; no key has this name.
  std::string clock() const { return below_root("%notes/%clock"); }
  std::string note(std::string_view key) const;
  /// The nodes from below the root down to the lock's own.
  std::vector<std::string> nodes(std::string_view lock) const;
  /// Empty if no lock name maps to this path.
  std::optional<std::string> name(std::string_view path) const;

 private:
  std::string part(std::string_view text, bool first) const;
  std::string below_root(std::string_view node) const;

  std::string root_;
  std::vector<std::string> root_nodes_;
};

/// Empty if a server accepts it as an absolute path, otherwise the error.
std::string path_error(std::string_view path);

}  // namespace dlock::zookeeper
