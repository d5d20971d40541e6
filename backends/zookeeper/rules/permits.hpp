// SPDX-License-Identifier: Apache-2.0
//
// The nodes of a semaphore, below the node of the lock with its name: Curator's
// InterProcessSemaphoreV2, with the limit beside it.
//
//   locks/   a lock: its holder may add leases, the others wait in its line
//   leases/  a node for each permit that is held, `_c_<uuid>-lease-<seq>`
//   %limit   the number of permits, `v=1 5`. Only dlock reads it: programs with Curator
//            contain the number. No lock's path has such a part
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/rules/contender.hpp"
#include "dlock/spi/record_format.hpp"

namespace dlock::zookeeper {

inline constexpr std::string_view kGuardNode = "locks";
inline constexpr std::string_view kLeasesNode = "leases";
inline constexpr std::string_view kLimitNode = "%limit";

inline bool is_part_of_semaphore(std::string_view child) noexcept {
  return child == kGuardNode || child == kLeasesNode || child == kLimitNode;
}

inline bool has_semaphore(const std::vector<std::string>& children) {
  return std::find(children.begin(), children.end(), kLimitNode) != children.end();
}

/// The prefix to which the server appends the sequence number.
inline std::string lease_prefix(std::string_view id) { return claim_prefix(id) + "-lease-"; }

/// Returns the UUID of the lease's owner. Empty: another form of name.
inline std::string_view lease_owner(std::string_view node) noexcept {
  constexpr std::string_view kBefore = "_c_";
  constexpr std::size_t kUuid = 36;
  if (node.size() < kBefore.size() + kUuid || !node.starts_with(kBefore)) return {};
  return node.substr(kBefore.size(), kUuid);
}

inline constexpr std::string_view kLimitFormat = "v=1 ";

inline std::string write_limit(std::uint32_t limit) {
  return std::string(kLimitFormat) + std::to_string(limit);
}

/// Returns the refusal of a newer dlock's limit. Empty: the text is not newer.
inline std::string newer_limit(std::string_view node, std::string_view text) {
  return newer_format(node, text, "v=", 1);
}

/// Empty: the text is not a limit.
inline std::optional<std::uint32_t> read_limit(std::string_view text) {
  if (!text.starts_with(kLimitFormat)) return {};
  text.remove_prefix(kLimitFormat.size());
  std::uint32_t limit = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, limit);
  if (error != std::errc() || stop != end || limit == 0) return {};
  return limit;
}

}  // namespace dlock::zookeeper
