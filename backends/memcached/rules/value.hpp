// SPDX-License-Identifier: Apache-2.0
//
// The value of a lock's key: its owner (`id` decides, the rest is for people). Lines of
// `key=value`, so that a plain `get` shows it. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dlock/lock_status.hpp"

namespace dlock::memcached {

struct Value {
  Owner owner;
  std::string name;  ///< the lock's name, which its key may only abbreviate
  std::chrono::milliseconds lease{0};
  std::int64_t since_ms = 0;      ///< granted, on the holder's wall clock
  std::int64_t renewed_ms = 0;    ///< on the same clock
  std::string proof;              ///< empty unless the grant may be adopted
  std::optional<Break> broken{};  ///< while an operator breaks the lock
};

/// Returns the refusal of a value that a newer dlock wrote to `key`. Empty: the value is not newer.
std::string newer_value(std::string_view key, std::string_view data);

std::string write_value(const Value& value);
/// Empty if another client wrote it.
std::optional<Value> read_value(std::string_view data);
/// The id in a marked value; the owner's own is beside it. No renewal treats such a value as its
/// own.
inline constexpr std::string_view kBrokenId = "broken";
/// The mark in the value, if an operator breaks the lock of that owner.
std::optional<Break> mark_of(std::string_view data, std::string_view owner_id);
/// Returns whether the key is the claim's: the owner id alone decides. False for a marked value.
bool belongs_to(std::string_view data, std::string_view owner_id);

}  // namespace dlock::memcached
