// SPDX-License-Identifier: Apache-2.0
//
// What a lock's text says while readers are in (scripts/readers_scripts.hpp has the format). Pure.
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
  std::int64_t till = 0;   ///< server time, ms; it has expired by then
  std::int64_t since = 0;  ///< likewise
};
/// All that are in it, expired or not, first come first. Empty: it is no such text.
std::optional<std::vector<ReaderRecord>> read_readers(std::string_view text);

/// Into `status`: who of them holds the lock at `now_us`, server time. Nobody: it is not held.
/// `lock_delay` comes after a holder's lease.
void add_readers(const std::vector<ReaderRecord>& records, std::int64_t now_us,
                 std::chrono::milliseconds lock_delay, LockStatus& status);

}  // namespace dlock::redis
