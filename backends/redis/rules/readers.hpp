// SPDX-License-Identifier: Apache-2.0
//
// Reads a lock's text while readers hold it. Its format is in scripts/readers_scripts.hpp. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dlock/lock_status.hpp"

namespace dlock::redis {

/// The first line of such a text. The value of a writer begins with a token. The scripts have the
/// same texts.
inline constexpr std::string_view kReadersPrefix = "dlock:readers v=1\n";
/// The part before the number of the format.
inline constexpr std::string_view kReadersStamp = "dlock:readers v=";

struct ReaderRecord {
  Owner owner;
  std::optional<Break> broken{};
  std::uint64_t token = 0;
  std::int64_t till = 0;   ///< end of the lease, server time in ms
  std::int64_t since = 0;  ///< server time in ms
};
/// Returns all records, expired or not, in the order of arrival. Empty: not such a text.
std::optional<std::vector<ReaderRecord>> read_readers(std::string_view text);

/// Adds the readers that hold the lock at `now_us`, server time, to `status`. Without such a reader
/// the lock is not held. `lock_delay` follows a holder's lease.
void add_readers(const std::vector<ReaderRecord>& records, std::int64_t now_us,
                 std::chrono::milliseconds lock_delay, LockStatus& status);

}  // namespace dlock::redis
