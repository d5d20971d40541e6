// SPDX-License-Identifier: Apache-2.0
//
// What stands in a lock's key: `token:owner`, with owner = `uuid,host,pid@namespace,app`, and at
// its end
// `,instance` if the holder wants to be told who else asks (the acquire script does). One string,
// so that clients that only compare values (redis-py, redsync, node-redlock, ...) and we exclude
// each other. And what stands for a waiter in the queue: whom to tell, and the owner. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/lock_status.hpp"

namespace dlock::redis {

/// Length of a UUID's text; the scripts cut by it.
inline constexpr std::size_t kUuidLength = 36;

std::string write_owner(const Owner& owner);
/// Never fails: what we did not write becomes an owner with an id only.
Owner read_owner(std::string_view text);

/// What a lock's key begins with while a migration's record stands in it. No value of ours does: it
/// begins with a token; and none that another client writes. The scripts know it, too.
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

/// 0, which is no token and refused as such, for what is no number.
std::uint64_t read_token(std::string_view text);

/// What a server says is left of a lease; below 0: it says that there is no end. It may say
/// anything, and no lease with its lock delay is longer than 31 days.
std::chrono::milliseconds read_remaining(std::int64_t left_ms);

/// `instance`: the UUID that names our subscription.
std::string write_waiter(std::string_view instance, std::string_view owner);
/// The same, and where the owner's text begins in it. `is_told`: the instance stands in that, too.
struct WaiterText {
  std::string text;
  std::size_t owner_at = 0;
};
WaiterText write_waiter(std::string_view instance, const Owner& owner, bool is_told);
Owner read_waiter(std::string_view text);

}  // namespace dlock::redis
