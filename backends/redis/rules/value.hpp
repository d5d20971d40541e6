// SPDX-License-Identifier: Apache-2.0
//
// The value of a lock's key: `token:owner`, with owner = `uuid,host,pid@namespace,app`. If the
// holder listens for other requests, the acquire script appends `,instance`. The value is one
// string. So dlock excludes clients that only compare values (redis-py, redsync, node-redlock,
// ...). Also the text of a waiter in the queue: the instance to notify, and the owner. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/lock_status.hpp"

namespace dlock::redis {

/// Length of a UUID's text. The scripts use it to cut texts.
inline constexpr std::size_t kUuidLength = 36;

std::string write_owner(const Owner& owner);
/// Never fails: another client's text becomes an owner with an id only.
Owner read_owner(std::string_view text);

/// The prefix of a lock's value while the key has a migration's record. Values of dlock begin with
/// a token. Values of other clients do not begin with this text either. The scripts contain the
/// same text.
inline constexpr std::string_view kRecordPrefix = "dlock:record:";

/// Before a lock's value while an operator breaks it: then the mark, and a newline.
inline constexpr std::string_view kBrokenPrefix = "dlock:broken:";
/// Before the owner of a reader or of permits that an operator breaks: then the mark, and a space.
inline constexpr std::string_view kBrokenOwnerPrefix = "broken:";

/// Removes a mark of that form from the front of `text`, and returns it. Empty: there is none.
std::optional<Break> cut_mark(std::string_view prefix, char end, std::string_view& text);

struct LockValue {
  std::optional<std::uint64_t> token;  ///< empty: not in our format. Below 2^53
  Owner owner;
  std::optional<Break> broken{};
};
LockValue read_value(std::string_view text);

/// Returns 0, which is never a token and is refused, for a text that is not a number.
std::uint64_t read_token(std::string_view text);

/// Returns the rest of a lease from the server's reply; below 0: without end. The reply may be any
/// number; a lease with its lock delay is at most 31 days.
std::chrono::milliseconds read_remaining(std::int64_t left_ms);

/// `instance`: the UUID that names the subscription of this process.
std::string write_waiter(std::string_view instance, std::string_view owner);
/// A waiter's text, and where the owner's text begins in it. `is_told`: the owner's text also has
/// the instance.
struct WaiterText {
  std::string text;
  std::size_t owner_at = 0;
};
WaiterText write_waiter(std::string_view instance, const Owner& owner, bool is_told);
Owner read_waiter(std::string_view text);

}  // namespace dlock::redis
