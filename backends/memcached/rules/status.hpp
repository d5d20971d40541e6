// SPDX-License-Identifier: Apache-2.0
//
// Makes the status of a lock from the values of its keys. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/lock_status.hpp"

namespace dlock::memcached {

struct Seen {
  std::optional<std::string> value;      ///< value of the lock's key
  std::optional<std::uint64_t> counter;  ///< the last token
};

/// Returns the number in a counter. Empty: the key has another value.
std::optional<std::uint64_t> read_counter(std::string_view data);
/// Returns the refusal of a counter that a newer dlock wrote to `key`: a counter is a bare number,
/// a newer format begins with `v=`. Empty: the counter is not newer.
std::string newer_counter(std::string_view key, std::string_view data);

/// `now_ms`: this process's wall clock.
LockStatus describe(const std::string& name, const Seen& seen, std::int64_t now_ms);

}  // namespace dlock::memcached
