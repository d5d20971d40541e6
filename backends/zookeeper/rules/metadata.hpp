// SPDX-License-Identifier: Apache-2.0
//
// What we write into a contender's node: who it is, for people. Lines of `key=value`, so that a
// plain `get` shows it; other clients ignore it, and theirs may hold anything. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/lock_handle.hpp"
#include "dlock/lock_status.hpp"

namespace dlock::zookeeper {

struct Metadata {
  Owner owner;
  std::chrono::milliseconds session_timeout{0};
  /// Of a reader's node that a writer's became: the czxid of that one. 0: not said.
  std::int64_t born = 0;
  /// Its holder hears when it is asked for its lock; once it was, by whom and in which time.
  bool revocable = false;
  std::optional<Revocation> asked{};
  std::uint32_t permits = 0;  ///< of a semaphore, that it has or waits for. 0: not said
  /// Its holder notices `broken`. False: another program, or an older dlock.
  bool breakable = false;
  std::optional<Break> broken{};  ///< while an operator breaks the lock
};

/// What Curator's Revoker writes in place of the holder's data, and its InterProcessMutex hears.
inline constexpr std::string_view kRevoke = "__REVOKE__";
/// What a node's data asks of its holder; empty: nothing.
std::optional<Revocation> read_asking(std::string_view data);

/// Replaces the data of a holder's node in the transaction that deletes it.
inline constexpr std::string_view kBrokenByOperator = "dlock: broken by an operator";

std::string write_metadata(const Metadata& metadata);
/// Empty for data of other programs and of a newer dlock.
std::optional<Metadata> read_metadata(std::string_view data);
/// Returns the refusal of a newer dlock's data. Empty: the data is not newer.
std::string newer_metadata(std::string_view node, std::string_view data);

/// Returns whether an operator breaks the lock of that node. A newer dlock's data may say so.
bool may_be_broken(std::string_view node, std::string_view data);

/// The transaction that a node's token counts from, and its place in line: that which made it or,
/// of a reader's that a writer's became, the writer's.
std::int64_t born_of(const std::optional<Metadata>& metadata, std::int64_t czxid);

}  // namespace dlock::zookeeper
