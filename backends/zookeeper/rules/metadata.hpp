// SPDX-License-Identifier: Apache-2.0
//
// The data that dlock writes into a contender's node: a description of the owner for people. Lines
// of `key=value`, so that a plain `get` shows it. Other clients ignore it, and their nodes may have
// any data. Pure.
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
  /// The czxid of the writer's node that this reader's node replaced. 0: none.
  std::int64_t born = 0;
  /// Its holder notices requests to release the lock. `asked`: the last request.
  bool revocable = false;
  std::optional<Revocation> asked{};
  std::uint32_t permits = 0;  ///< permits of a semaphore that it has or waits for; 0: unknown
  /// Its holder notices `broken`. False: another program, or an older dlock.
  bool breakable = false;
  std::optional<Break> broken{};  ///< while an operator breaks the lock
};

/// The text that Curator's Revoker writes over the holder's data, and that Curator's
/// InterProcessMutex watches for.
inline constexpr std::string_view kRevoke = "__REVOKE__";
/// Reads the request in a node's data. Empty: no request.
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

/// Returns the transaction that a node's token and its place count from. For a reader's node that
/// replaced a writer's, it is the writer's. Otherwise it is the node's own.
std::int64_t born_of(const std::optional<Metadata>& metadata, std::int64_t czxid);

}  // namespace dlock::zookeeper
