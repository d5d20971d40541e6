// SPDX-License-Identifier: Apache-2.0
//
// What `dlock status` says of a lock, from what stands under its keys. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/lock_status.hpp"

namespace dlock::memcached {

struct Seen {
  std::optional<std::string> value;      ///< of the lock's key
  std::optional<std::uint64_t> counter;  ///< the last token given
};

/// The number in a counter; empty: something else is there.
std::optional<std::uint64_t> read_counter(std::string_view data);
/// Returns the refusal of a counter that a newer dlock wrote to `key`: a counter is a bare number,
/// a newer format begins with `v=`. Empty: the counter is not newer.
std::string newer_counter(std::string_view key, std::string_view data);

/// `now_ms`: the wall clock here.
LockStatus describe(const std::string& name, const Seen& seen, std::int64_t now_ms);

}  // namespace dlock::memcached
